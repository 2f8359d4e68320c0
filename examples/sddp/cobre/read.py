"""Read a folder of Cobre's as a case: of Cobre 0.5, or of 0.18 as `write.py` writes it.

Every file is checked against a declaration (`schema.py`) before any value of the file is used.

The stage problem of Cobre is that of `crates/cobre-sddp/src/lp_builder/matrix.rs`. What differs
from ours is noted while files are read, and then named in one sentence.
"""

from pathlib import Path
from typing import Any

from case.fields import CaseError

from cobre.config import read_config
from cobre.folder import Folder
from cobre.hydro_schema import USUAL_PRICES
from cobre.hydros import Hydros
from cobre.openings import DRAWN, Scenario
from cobre.schema import ANYTHING, PRICE, Object
from cobre.stages import read_stages
from cobre.study import Study, by_number, shorten
from cobre.system import BUSES, STEPS, read_buses, read_lines, read_thermals

PENALTIES = Object(
    {
        "bus": Object({"deficit_segments": STEPS, "excess_cost": PRICE}),
        "line": Object({"exchange_cost": PRICE}),
        "hydro": USUAL_PRICES,
        "non_controllable_source": Object({"curtailment_cost": PRICE}),
    },
    old={"version": ANYTHING},
)


def read_folder(path: Path) -> dict[str, Any]:
    """Return the case in a folder of Cobre's, in the schema of README.md.

    The case has a `note` if its openings are not those that Cobre would draw.

    Raises
    ------
    NotFromCobre
        If the case has what this program lacks; one sentence names all of it.
    CaseError
        If a file is not as Cobre would write it.
    """
    folder = Folder(path)
    try:
        case = _read(folder)
    except CaseError:
        folder.refuse()  # a lacking feature may be the reason why the field is not as expected
        raise
    folder.refuse()
    return case


def _read(folder: Folder) -> dict[str, Any]:
    """Return the case; features that are lacking have been noted."""
    config = read_config(folder)
    folder.check_files()
    stages = read_stages(folder)
    penalties = folder.json("penalties.json", PENALTIES)
    root = folder.json("system/buses.json", BUSES)
    buses = {field.value["id"]: b for b, field in enumerate(by_number(root, "buses"))}
    study = Study(folder, stages, buses)
    hydros = Hydros(study, penalties, config.bought)
    scenario = Scenario(study, hydros, config)
    case = {
        "name": folder.name,
        "description": "read from a folder of Cobre's",
        "features": [],
        "stages": len(stages.ids),
        "buses": read_buses(study, root, penalties),
        "lines": read_lines(study, penalties),
        "hydros": hydros.read(),
        "thermals": read_thermals(study),
        **scenario.read(),
        "discount": shorten(stages.discount),
        "terminal_value": 0.0,
    }
    return case | ({"note": DRAWN.format(name=folder.name)} if scenario.drawn else {})
