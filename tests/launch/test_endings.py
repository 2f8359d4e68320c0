"""How a job ends under each launcher: the exit code, the rank that is named, and the sentence.

The launchers are ``run`` and ``launch``, ``run`` over each MPI, and two launchers of ``run`` that
stand for two machines.
"""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from cobre_comm.processes.port import ReservedPort
from tests.grid import some
from tests.launch.command import PROGRAMS, cobre
from tests.launch.mpi_libraries import LIBRARIES, needs

ENDS = PROGRAMS / "ends.py"
RAISED = "raised ValueError: no such case"
KILLED = "was ended by signal 9 (SIGKILL)"
MEMORY = "; signal 9 is also what the kernel's out-of-memory killer sends"
PLAN = "the job is started again in 1 s, on SIZE ranks (restart 1 of 1)"
GIVEN_UP = "the job is not started again: it has been, once"
WHERE = "still runs; where in its Python code, or in compiled code that the first line calls:"

# Key: how rank 1 ends; what the others do then; the options of the launcher. Value: the exit code;
# the ranks of which the last line names one; the sentence on that rank; and the sentence of
# `launch` if it is another, because `launch` names the exception, whereas `run` prints a traceback
# before its sentence.
ENDINGS = {
    # Rank 1 ends for a cause of its own.
    ("raise", "raises", ""): (1, "1", "exited with code 1", RAISED),
    ("sys.exit", "raises", ""): (3, "1", "exited with code 3", "raised SystemExit: 3"),
    ("os._exit", "raises", ""): (5, "1", "exited with code 5"),
    ("abort", "raises", ""): (7, "1", "exited with code 7"),
    ("SIGKILL", "raises", ""): (137, "1", KILLED + MEMORY),
    ("SIGSEGV", "raises", ""): (139, "1", "was ended by signal 11 (SIGSEGV)"),
    # The failures of the other ranks follow from that of rank 1, whenever they occur, with any
    # codes.
    ("os._exit", "slow", ""): (5, "1", "exited with code 5"),
    ("os._exit", "slow exit", ""): (5, "1", "exited with code 5"),
    ("SIGKILL", "exit", ""): (137, "1", KILLED + MEMORY),
    ("SIGKILL", "caught", ""): (137, "1", KILLED + MEMORY),
    ("os._exit", "deaf", ""): (5, "1", "exited with code 5"),
    ("SIGKILL", "early", ""): (137, "1", KILLED + MEMORY),
    # All ranks end in this way, or rank 1 ends after all other ranks have finished.
    ("os._exit", "all", ""): (5, "012", "exited with code 5"),
    ("SIGKILL", "last", ""): (137, "1", KILLED + MEMORY),
    # Rank 1 does not arrive at a call, and continues to run.
    ("raise", "late", "timeout"): (1, "02", "exited with code 1", "raised CollectiveFailed: ba"),
    # If survivors continue, there is no last line; else that line names a survivor that has failed.
    ("SIGKILL", "caught", "survive"): (0, "", ""),
    ("raise", "caught", "survive"): (0, "", ""),
    ("os._exit", "caught", "survive"): (0, "", ""),
    ("SIGKILL", "last", "survive"): (0, "", ""),
    ("SIGKILL", "all", "survive"): (137, "012", KILLED + MEMORY),
    ("SIGKILL", "raises", "survive"): (
        1, "02", "exited with code 1", "raised CollectiveFailed: barrier failed: rank 1 died"
    ),
    ("SIGKILL", "exit", "survive"): (4, "02", "exited with code 4", "raised SystemExit: 4"),
    ("abort", "caught", "survive"): (7, "1", "exited with code 7"),
    ("SIGKILL", "early", "survive"): (137, "1", KILLED + MEMORY),
    # The job is started again, and rank 1 ends in the same way again.
    ("os._exit", "raises", "again"): (5, "1", "exited with code 5"),
}  # fmt: skip
# The lines before the last line, or all lines if survivors continue. A busy launcher may learn of
# the loss only after the other ranks have ended; then it says that the others had ended.
GO_ON = "the other ranks (go on|had ended)"
BEFORE = {
    ("raise", "late", "timeout"): [re.escape(f"rank 1 {WHERE}")],
    ("SIGKILL", "caught", "survive"): [f"rank 1 {re.escape(KILLED)}; {GO_ON}"],
    ("raise", "caught", "survive"): [f"rank 1 {RAISED}; {GO_ON}"],
    ("os._exit", "caught", "survive"): [f"rank 1 exited with code 5; {GO_ON}"],
    ("SIGKILL", "last", "survive"): [f"rank 1 {re.escape(KILLED)}; the other ranks had ended"],
    ("os._exit", "raises", "again"): [re.escape(PLAN), GIVEN_UP],
}  # fmt: skip
# There is a line on the loss, unless a busy launcher learns of the loss only after a survivor has
# failed.
MAY_TELL = [("SIGKILL", way, "survive") for way in ("all", "raises", "exit")]
OPTIONS = {
    "": ([], {}),
    "timeout": (["--timeout", 1.5], {"timeout": 1.5}),
    "survive": (["--survive"], {"survive": True}),
    "again": (["--max-restarts", 1], {"max_restarts": 1}),
}


def ended(launcher, size, how, way, option):
    """Let a job end in this way; return the completed process and the lines of its launcher."""
    words, keywords = OPTIONS[option]
    if launcher == "launch":
        words = "launch", way, how, size, json.dumps(keywords)
        done = cobre(*words, before=[sys.executable, str(ENDS)])
    else:
        backend, variables = ("shm", {}) if launcher == "run" else ("mpi", needs(launcher))
        told = "run", "-n", size, "--backend", backend, *words, ENDS, "run", way, how
        done = cobre(*told, **variables)
    return done, said_by(done, size)


def said_by(done, size):
    """Return the lines of a launcher, without those that announce last words."""
    said = re.findall("^cobre-comm: (.*)$", done.stderr, re.MULTILINE)
    said = [line.replace(f"on {size} ranks", "on SIZE ranks") for line in said]
    return [line for line in said if not line.startswith("the last words of")]


BY_EITHER = [(row, launcher, 3) for row in ENDINGS for launcher in ("run", "launch")]
# mpiexec ends all ranks when one rank is lost, so no rank survives.
OVER_MPI = [(row, library, 3) for row in ENDINGS if "survive" not in row for library in LIBRARIES]
# One other rank is enough: it fails after rank 1, or continues without rank 1.
DAILY = [(row, ("run", "launch")[number % 2], 2) for number, row in enumerate(ENDINGS)]
DAILY_OVER_MPI = [
    (row, "mpich", 2)
    for row in ENDINGS
    if row in {(how, "raises", "") for how in ("raise", "sys.exit", "abort", "SIGKILL")}
]


@pytest.mark.parametrize(
    ("row", "launcher", "size"), some([*DAILY, *DAILY_OVER_MPI], [*BY_EITHER, *OVER_MPI]), ids=str
)
def test_both_launchers_tell_of_an_ending_alike(row, launcher, size):
    code, ranks, *sentences = ENDINGS[row]
    done, said = ended(launcher, size, *row)
    assert done.returncode == code, done.stderr
    if ranks:
        sentence = sentences[-1 if launcher == "launch" else 0]
        told = [line for line in said if line not in (PLAN, GIVEN_UP)][-1]
        ranks = "".join(rank for rank in ranks if int(rank) < size)
        last = size - 1
        # the line also names all ranks that made the same mistake
        named = f"ranks? [{ranks}](-{last}| and {last})?"
        assert re.fullmatch(f"{named} {re.escape(sentence)}.*", told), done.stderr
    for line in BEFORE.get(row, []):
        assert sum(bool(re.search(line, each)) for each in said) == 1, done.stderr
    if row not in BEFORE and row not in MAY_TELL:
        others = "the other ranks", "started again", "still runs"
        assert not any(word in line for line in said for word in others)


# Two launchers, each of one rank: rank 1 ends as the row says, and rank 0 with the code here. Rows
# in which a rank waits for minutes are left out, because no launcher ends the other launcher's
# rank.
BY_TWO = {
    ("raise", "raises", ""): 1,
    ("sys.exit", "raises", ""): 1,
    ("os._exit", "raises", ""): 1,
    ("abort", "raises", ""): 7,
    ("SIGKILL", "raises", ""): 1,
    ("SIGSEGV", "raises", ""): 1,
    ("os._exit", "slow", ""): 1,
    ("os._exit", "slow exit", ""): 4,
    ("SIGKILL", "exit", ""): 4,
    ("SIGKILL", "caught", ""): 0,
    ("os._exit", "all", ""): 5,
    ("SIGKILL", "last", ""): 0,
}
DAILY_BY_TWO = [
    (row, BY_TWO[row])
    for row in [
        ("sys.exit", "raises", ""),
        ("SIGKILL", "exit", ""),
        ("SIGKILL", "caught", ""),
        ("os._exit", "all", ""),
    ]
]


@pytest.mark.parametrize(("row", "other"), some(DAILY_BY_TWO, BY_TWO.items()), ids=str)
def test_each_of_two_launchers_tells_of_its_own_rank(row, other):
    how, way, _ = row
    with ReservedPort() as reserved, ThreadPoolExecutor() as pool:
        place = "-n", 1, "--nnodes", 2, "--coordinator", f"127.0.0.1:{reserved.port}"
        words = [("run", *place, "--node-rank", node, ENDS, "run", way, how) for node in (0, 1)]
        jobs = list(pool.map(lambda each: cobre(*each, COBRE_TCP_TOKEN="a1" * 32), words))
    code, _, sentence, *_ = ENDINGS[row]
    codes = [other, code]
    assert [done.returncode for done in jobs] == codes, jobs
    told = f"rank 0 exited with code {other}", f"rank 1 {sentence}"
    expected = [[line] if code else [] for code, line in zip(codes, told, strict=True)]
    assert [said_by(done, 2) for done in jobs] == expected
