"""The table of methods has every method, and says where it works, and whether all ranks call it."""

import re
from pathlib import Path

from cobre_comm import Communicator
from cobre_comm.jit.types import CommType
from tests.documents.test_types import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "communicator.md"
ROW = r"^\| `comm\.(\w+).*` \| .+ \| (yes|no) \| (yes|no) \|$"


def test_the_table_of_methods():
    rows = re.findall(ROW, PAGE.read_text(), flags=re.MULTILINE)
    assert {name for name, *_ in rows} == METHODS
    for name, in_njit, collective in rows:
        assert (in_njit == "yes") == (name in CommType.members), name
        first = (getattr(Communicator, name).__doc__ or "").partition("\n")[0]
        is_collective = CommType.members.get(name, "; collective" in first)
        assert (collective == "yes") == is_collective, name
