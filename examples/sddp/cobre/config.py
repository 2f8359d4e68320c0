"""What `config.json` says about the problem; its fields on how Cobre solves it are not read."""

from dataclasses import dataclass

from case.fields import Field

from cobre.folder import Folder, at
from cobre.schema import ANYTHING, TEXT, Integer, Kind, Object, Text

METHODS = "none", "truncation", "penalty", "truncation_with_penalty"
OPENINGS = "scenarios/noise_openings.parquet"


def _unread(*names: str) -> dict[str, Kind]:
    """Return declarations of fields that are not read."""
    return dict.fromkeys(names, ANYTHING)


SEED = Integer(-(2**63), 2**64 - 1)
SCHEME = Object({"scheme": TEXT})
SOURCE = Object(
    optional=_unread("openings", "historical_years")
    | {"seed": SEED}
    | dict.fromkeys(("inflow", "load", "ncs"), SCHEME),
)
TRAINING = Object(
    optional=_unread(
        "enabled", "forward_passes", "selection", "stopping_rules", "stopping_mode",
        "cut_formulation", "forward_pass", "cut_selection", "solver", "parallelism",
    )
    | {"tree_seed": SEED, "scenario_source": SOURCE},
)  # fmt: skip
MODELING = Object(
    optional={
        "inflow_non_negativity": Object(
            # Cobre uses the price in penalties.json instead.
            optional={"method": Text(METHODS), "penalty_cost": ANYTHING}
        ),
        "cost_scale_factor": ANYTHING,
    }
)
POLICY = Object(
    optional=_unread("path", "mode", "validate_compatibility", "checkpointing"),
    features={"boundary": "costs after the last stage"},
)
# Fields about outputs and simulations are not read. Fields about models fitted to a history are not
# read either, because the history itself is noted as a missing feature.
CONFIG = Object(
    {"training": TRAINING},
    optional={"modeling": MODELING, "policy": POLICY}
    | _unread("simulation", "exports", "upper_bound_evaluation", "estimation"),
)


@dataclass(frozen=True)
class Config:
    """What becomes of negative inflows, and where openings come from.

    Negative inflows may be cut off, and water may be bought. The openings are given, or drawn from
    `seed`.
    """

    truncated: bool
    bought: bool
    given: bool
    seed: int


def read_config(folder: Folder) -> Config:
    """Return the configuration; note as missing any sampling that is not from openings."""
    root = folder.json("config.json", ANYTHING)
    # only 0.18 has this field, and requires it
    folder.is_new = root.get("training").has("selection")
    CONFIG.check(root, folder)
    if not folder.is_new and not root.get("training").has("forward_passes"):
        # the fields of both versions are missing; the error names that of 0.18
        root.get("training").get("selection")
    method = _read_method(root)
    policy, training = at(root, "policy"), root.get("training")
    mode = None if policy is None else at(policy, "mode")
    folder.lack_if({"a policy to start from": mode is not None and mode.value != "fresh"})
    seed, source, given = at(training, "tree_seed"), at(training, "scenario_source"), True
    if source is not None:
        _check_schemes(folder, source)
        seed = seed or at(source, "seed")
    if folder.is_new:  # 0.18 uses the openings of a file only if the configuration says so
        openings = None if source is None else at(source, "openings")
        given = openings is not None and openings.get("source").value == "file"
        folder.lack_if({"a file of openings that are not used": folder.has(OPENINGS) and not given})
        if given and not folder.has(OPENINGS):
            raise openings.get("source").error(f"another source, as there is no {OPENINGS}")
    return Config(
        truncated=method.startswith("truncation"),
        bought=method.endswith("penalty"),
        given=given and folder.has(OPENINGS),
        seed=0 if seed is None else abs(seed.integer(-(2**63))),
    )


def _read_method(root: Field) -> str:
    """Return the method by which negative inflows are avoided."""
    modeling = at(root, "modeling")
    inflow = None if modeling is None else at(modeling, "inflow_non_negativity")
    method = None if inflow is None else at(inflow, "method")
    return "penalty" if method is None else method.text()


def _check_schemes(folder: Folder, source: Field) -> None:
    """Note as missing the scenarios that training does not sample from the openings."""
    folder.lack_if({"historical scenarios": at(source, "historical_years") is not None})
    for name in ("inflow", "load", "ncs"):
        entry = at(source, name)
        if entry is not None:
            scheme = entry.get("scheme").text()
            if scheme != "in_sample":
                folder.lack(f"{scheme.replace('_', '-')} scenarios")
