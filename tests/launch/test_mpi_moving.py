import pytest

from tests.launch.command import PROGRAMS, cobre, lines_of
from tests.launch.mpi import LIBRARIES, RUN, needs


@pytest.mark.parametrize("library", LIBRARIES)
def test_calls_of_the_migration_guide_give_what_mpi4py_gives(library):
    done = cobre(*RUN, 3, PROGRAMS / "moved.py", **needs(library))
    assert done.returncode == 0, done.stderr
    for rank in range(3):
        refused, last = lines_of(done.stdout, rank)
        assert refused.startswith("refused: allreduce failed")
        assert last == "all the same"
