"""If a rank raises, the errors of all other ranks have the type and first line of its exception."""

import itertools
import re

import pytest

from tests.grid import some
from tests.launch.command import PROGRAMS, cobre, lines_of
from tests.launch.mpi_libraries import on

RAISES = PROGRAMS / "raises.py"
SAID = "rank 2 raised ValueError: bad inflow file"
# For each way in which rank 2 ends: what the other ranks are told.
TOLD = {
    "with": SAID,
    "bare": SAID,
    "finally": SAID,
    "handler": SAID,
    "part": SAID,  # in the part the order of ranks is reversed; rank 2 of the part raises
    "unprintable": "rank 2 raised __main__.Unprintable: <str() raised SystemExit>",
    "surrogates": "rank 2 raised ValueError: bad \\udcff file",
    "long": f"rank 2 raised ValueError: {'é' * 116}...",
    "empty": "rank 2 raised ValueError",
    "exit": "rank 2 closed its communicator, while others waited for it",
}
PLACES = [
    "shm", "tcp", "tcp-flat", "tcp:0,1,1,0", "tcp:0,0,1,1", "mpi-openmpi", "mpi-mpich",
    "mpi-openmpi:0,1,2,3", "mpi-mpich:0,0,1,1", "mpi-openmpi:0,1,1,0",
]  # fmt: skip
DAILY = [
    ("bare", "shm", "njit"), ("surrogates", "shm", "python"), ("part", "shm", "python"),
    ("with", "tcp:0,1,1,0", "python"), ("with", "mpi-mpich:0,0,1,1", "njit"),
]  # fmt: skip

EVERYWHERE = itertools.product(("with", "bare", "exit"), PLACES, ("python", "njit"))
EACH_WAY = itertools.product(TOLD, ("shm", "tcp:0,1,1,0"), ("python",))
ALL = dict.fromkeys([*EVERYWHERE, *EACH_WAY])


@pytest.mark.parametrize(("way", "place", "caller"), some(DAILY, ALL))
def test_the_others_are_told_what_a_rank_raised(way, place, caller):
    option, variables = on(place)
    size = 4 if ":" in place else 3
    done = cobre("run", "-n", size, *option, RAISES, way, caller, **variables)
    for rank in {*range(size)} - {size - 1 - 2 if way == "part" else 2}:
        assert lines_of(done.stdout, rank) == [f"barrier failed: {TOLD[way]}"], done.stderr
    assert done.returncode == (3 if way == "exit" else 1)


ALIKE = """
import sys
from cobre_comm import create_communicator
with create_communicator() as comm:
    comm.barrier()
    print(f"before {comm.rank}", file=sys.stderr)
    if comm.rank < int(sys.argv[1]):
        raise ValueError("no such case: \\udcff")
    if comm.rank == comm.size - 1:
        raise KeyError("another")
    comm.barrier()
"""


@pytest.fixture
def program(written):
    return written(ALIKE)


def test_one_mistake_of_all_ranks_is_printed_once(program):
    done = cobre("run", "-n", 3, program, 3)
    assert done.stderr.count("Traceback") == 1, done.stderr
    told = f"""\
cobre-comm: the last words of ranks 0-2:
    Traceback (most recent call last):
      File "{program}", line 8, in <module>
        raise ValueError("no such case: \\udcff")
    ValueError: no such case: \\udcff
"""
    assert told in done.stderr
    assert re.fullmatch(r"cobre-comm: rank \d exited with code 1", done.stderr.splitlines()[-1])
    assert all(lines_of(done.stderr, rank) == [f"before {rank}"] for rank in range(3))
    assert done.returncode == 1


EARLY = """
import os, sys
import cobre_comm
if os.fork() == 0:
    raise KeyError("of a child")
os.wait()
if sys.argv[1] == "case":
    raise OSError("no such case")
cobre_comm.create_communicator(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("kind", "said"), [("case", "OSError: no such case"), ("smh", "there is no backend 'smh'")]
)
def test_a_mistake_before_the_communicator_is_printed_once(written, kind, said):
    """A forked child prints a traceback of its own; the report of the rank still arrives."""
    done = cobre("run", "-n", 3, written(EARLY), kind)
    assert done.stderr.count(said) == 1, done.stderr
    assert "the last words of ranks 0-2:" in done.stderr
    assert done.stderr.count("KeyError: 'of a child'") == 3
    assert done.returncode == 1


def test_each_mistake_is_printed_and_what_followed_before_it(program):
    done = cobre("run", "-n", 3, program, 0)
    *_, followed, cause = re.findall("the last words of (.*):\n", done.stderr)
    assert (followed, cause) == ("ranks 0 and 1", "rank 2")
    # On a busy machine the launcher may end all ranks before they can fail, but not in each of five
    # runs.
    again = (cobre("run", "-n", 3, program, 0).stderr for _ in range(4))
    tried = itertools.chain([done.stderr], again)
    assert any(re.search("ranks? .* failed after rank 2 had", said) for said in tried)
    assert "CollectiveFailed: barrier failed: rank 2 raised KeyError: 'another'" in done.stderr
    assert done.stderr.count("Traceback") == 2


def test_a_traceback_goes_to_the_file_of_its_rank(program, tmp_path):
    logs = tmp_path / "logs"
    cobre("run", "-n", 2, "--quiet-ranks", "0-", "--log-dir", logs, program, 2)
    for rank in range(2):
        said = (logs / f"rank-{rank}.log").read_text()
        assert said.startswith(f"before {rank}\nTraceback")
        assert said.endswith("ValueError: no such case: \\udcff\n")


HOOKS = """
import os, sys
from cobre_comm import create_communicator
way = sys.argv[1]
if way == "hook":
    sys.excepthook = lambda kind, error, trace: print("MY HOOK", error, file=sys.stderr)
comm = create_communicator()
comm.barrier()
if way == "deaf":
    os.closerange(3, 256)
raise ValueError("x" * (30_000 if way == "long" else 3))
"""


@pytest.mark.parametrize(
    ("way", "word"),
    [("hook", "MY HOOK xxx"), ("deaf", "ValueError: xxx"), ("long", "x" * 30_000)],
)
def test_a_rank_prints_itself_what_the_launcher_cannot_print_for_it(way, word, written):
    done = cobre("run", "-n", 2, written(HOOKS), way)
    for rank in range(2):
        assert any(word in line for line in lines_of(done.stderr, rank)), done.stderr
