"""The backends on which the suites run, with the numbers of ranks for each."""

import pytest

from cobre_comm.testing import run_ranks_outcomes
from cobre_comm.testing.cases.case import OURS
from cobre_comm.testing.conformance import Grid, Slow
from cobre_comm.testing.pairwise import choose
from cobre_comm.testing.ranks.outcome import values_of
from cobre_comm.testing.suite.here import skip_unless_here as skip_unless_here
from cobre_comm.testing.suite.here import why_not as why_not

SIZES = (1, 2, 3, 4, 7)
EVERY_RANK_ALONE = "0,1,2,3,4,5,6"


# The node of each rank, and the number of ranks: one rank on each node, 2 + 2 ranks, 3 + 1, ranks
# on two nodes in turn, 1 + 2 + 4. A backend with all ranks on one node has no list in its name.
LAYOUTS = [("0,1,2,3", 4), ("0,0,1,1", 4), ("0,0,0,1", 4), ("0,1", 4), ("0,1,1,2,2,2,2", 7)]


def slow(value):
    return pytest.param(value, marks=pytest.mark.slow, id=str(value))


def values(backend, size, body, *args, **keywords):
    """Return the values of ranks whose bodies make communicators themselves, or need none."""
    return values_of(run_ranks_outcomes(backend, size, body, *args, connect=False, **keywords))


def usual_and_slow(values):
    """Return the usual and the slow values of a grid as parameters."""
    return [slow(each.value) if isinstance(each, Slow) else each for each in values]


def some(quick, everything):
    """Return parameters, marked as slow unless they are among the quick ones."""
    rest = [values for values in everything if values not in quick]
    return [*quick, *(pytest.param(*values, marks=pytest.mark.slow) for values in rest)]


def pairs(rows, alone=()):
    """Return a few rows; each pair of values that occurs in any row occurs in one of these few."""
    return [rows[number] for number in sorted(choose(rows, alone=alone))]


def points(usual, slow_ones=()):
    return [*usual, *(Slow(point) for point in slow_ones)]


# On one node mpi and tcp run the kernels of shm, and differ in how they start. Over several nodes,
# one rank of each node or several (``x2``) call MPI, which moves messages by shared memory of its
# own, or through sockets (``-net``). The usual points have each library and each way at least once.
MPI_USUAL = [
    ("mpi-mpich", 2),
    ("mpi-mpich-net:0,1", 2),
    ("mpi-openmpi-net", 3),
    ("mpi-openmpi:0,0,1,1", 4),
    ("mpi-mpich-net:0,1", 3),
]
MPI_SLOW = [
    *(("mpi-openmpi", size) for size in SIZES),
    *(("mpi-mpich", size) for size in (1, 3, 4, 7)),
    (f"mpi-openmpi:{EVERY_RANK_ALONE}", 3),
    ("mpi-openmpi-net", 4),
    ("mpi-openmpi-net:0,1", 7),
    ("mpi-mpich-net", 4),
    ("mpi-mpich-net:0,1", 7),
    (f"mpi-mpich:{EVERY_RANK_ALONE}", 7),
    ("mpi-openmpi:0,1,1", 7),
    *(("mpi-mpich:0,1", size) for size in (3, 7)),
    *((f"mpi-mpich:{layout}", size) for layout, size in LAYOUTS),
    *((f"mpi-openmpi:{layout}", size) for layout, size in LAYOUTS if layout != "0,0,1,1"),
    ("mpi-mpich:0,1,1,0x2", 4),
    ("mpi-openmpi:0,1,1,0x2", 4),
]
WITHOUT_MPI = [("local", 1), *((name, size) for name in ("shm", "tcp-flat") for size in SIZES)]
TCP_OF_NODES = [("tcp", 4), ("tcp:0,0,1,1", 4), ("tcp:0,0,1,1x2", 4)]
TCP_SLOW = [
    *((f"tcp:{layout}", size) for layout, size in LAYOUTS if layout != "0,0,1,1"),
    ("tcp:0,1,1,0,1,0x3", 7),
]
# Seven ranks on few cores take as long as all other points together. The points of three ranks are
# left to slow runs too, because mpi has three ranks at the usual points.
CROWDED = [("shm", 7), ("tcp-flat", 7), ("shm", 3), ("tcp-flat", 3)]
OUR_GRID = Grid(
    points=points(
        [point for point in [*WITHOUT_MPI, *TCP_OF_NODES, *MPI_USUAL] if point not in CROWDED],
        [*CROWDED, *TCP_SLOW, *MPI_SLOW],
    ),
    # For cases that take many minutes: every transport, and few numbers of ranks between 1 and 7.
    thorough_points=[
        *(("local", 1), ("shm", 2), ("shm", 7), ("tcp-flat", 3), ("tcp", 3)),
        ("mpi-openmpi", 2),
        ("mpi-openmpi-net", 3),
        ("mpi-mpich-net:0,1", 3),
    ],
    # For wrong arguments: few points, because each test tries many arguments.
    argument_points=points(
        [
            *(("local", 1), ("shm", 3), ("tcp-flat", 3)),
            ("mpi-mpich-net:0,1", 3),
        ],
        [("shm", 1), ("tcp", 1), ("mpi-openmpi", 1), ("mpi-mpich", 3), ("mpi-openmpi-net", 3)],
    ),
    # Each backend occurs once, because the same code is compiled whatever nodes the ranks are on.
    typed_points=[("local", 1), ("shm", 2), ("tcp-flat", 2), ("mpi-mpich", 2)],
    # Backends of several ranks, for cases that choose the number of ranks themselves.
    backends=[
        "shm",
        "tcp-flat",
        Slow("tcp"),
        "mpi-openmpi-net",
        Slow("mpi-mpich"),
        Slow("mpi-openmpi"),
        Slow(f"mpi-mpich:{EVERY_RANK_ALONE}"),
        Slow("mpi-openmpi:0,1"),
        Slow("mpi-openmpi-net:0,1"),
        Slow("mpi-mpich-net"),
        Slow("mpi-mpich-net:0,1"),
        Slow("mpi-mpich:0,0,1"),
    ],
    # Backends on which ranks see at once that the process of a rank has ended. MPI does not report
    # this if ranks are on several nodes.
    watchful_backends=["shm", "tcp", "tcp-flat", "mpi-mpich", Slow("mpi-openmpi")],
    quick_points=[
        *(("local", 1), ("shm", 2), ("tcp", 4), ("tcp-flat", 2)),
        *(("mpi-mpich", 2), ("mpi-mpich-net:0,1", 2), ("mpi-mpich-net:0,1", 3)),
    ],
    **vars(OURS),
)
timeout_of = OUR_GRID.timeout_of
