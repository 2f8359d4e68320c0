"""Which backends and numbers of ranks the suites run on."""

import pytest

from cobre_comm.testing.conformance import Grid
from cobre_comm.testing.conformance.here import skip_unless_here, why_not

__all__ = [
    "EVERY_RANK_ALONE",
    "OUR_GRID",
    "skip_unless_here",
    "slow",
    "some",
    "timeout_of",
    "why_not",
]

SIZES = (1, 2, 3, 4, 7)
EVERY_RANK_ALONE = "0,1,2,3,4,5,6"
# What settles how large the chunks are: over tcp, through rank 0 (the star) or around the ring.
SMALL_BUFFERS = {"COBRE_SHM_BUFFER_BYTES": "4096", "COBRE_MPI_BUFFER_BYTES": "4096"}
TIMEOUTS = {kind: f"COBRE_{kind.upper()}_TIMEOUT_SECS" for kind in ("shm", "tcp", "mpi")}


def slow(value, name=None):
    return pytest.param(value, marks=pytest.mark.slow, id=name or str(value))


def some(quick, everything):
    """Return parameters of which only some are for a quick run."""
    rest = [values for values in everything if values not in quick]
    return [*quick, *(pytest.param(*values, marks=pytest.mark.slow) for values in rest)]


# On one node mpi is the kernels of shm, started in another way; on several, one rank of each node
# speaks over MPI. The quick ones meet each library, and each way, at least once.
MPI_QUICK = [
    ("mpi-mpich", 2),
    (f"mpi-openmpi:{EVERY_RANK_ALONE}", 3),
    ("mpi-openmpi:0,0,1,1", 4),
    ("mpi-mpich:0,1", 3),
]
MPI_SLOW = [
    *(("mpi-openmpi", size) for size in SIZES),
    *(("mpi-mpich", size) for size in (1, 3, 4, 7)),
    (f"mpi-openmpi:{EVERY_RANK_ALONE}", 4),
    (f"mpi-mpich:{EVERY_RANK_ALONE}", 4),
    (f"mpi-mpich:{EVERY_RANK_ALONE}", 7),
    ("mpi-openmpi:0,1,1", 7),
    ("mpi-mpich:0,1", 4),
    ("mpi-mpich:0,1", 7),
]


def point_id(point):
    return "-".join(map(str, point))


def grid(quick, slow_ones=()):
    return [
        *(pytest.param(point, id=point_id(point)) for point in quick),
        *(slow(point, point_id(point)) for point in slow_ones),
    ]


WITHOUT_MPI = [("local", 1), *((backend, size) for backend in ("shm", "tcp") for size in SIZES)]
# Seven ranks on few cores take as long as all others; three meet over mpi every day.
CROWDED = [("shm", 7), ("tcp", 7), ("shm", 3), ("tcp", 3)]
POINTS = grid(
    [point for point in [*WITHOUT_MPI, *MPI_QUICK] if point not in CROWDED],
    [*CROWDED, *MPI_SLOW],
)
# For what takes long at each of its points: each way of mpi once.
THOROUGH_POINTS = grid(
    [*WITHOUT_MPI, ("mpi-openmpi", 2), (f"mpi-openmpi:{EVERY_RANK_ALONE}", 3), ("mpi-mpich:0,1", 3)]
)
# Those of several ranks, for tests that choose the number of ranks.
BACKENDS = [
    "shm",
    "tcp",
    f"mpi-openmpi:{EVERY_RANK_ALONE}",
    slow("mpi-mpich"),
    slow("mpi-openmpi"),
    slow(f"mpi-mpich:{EVERY_RANK_ALONE}"),
    slow("mpi-openmpi:0,1"),
    slow("mpi-mpich:0,0,1"),
]
# Of those of mpi, the ones on which all is tried, and not one case for many.
THOROUGH_OVER_MPI = ("mpi-mpich", f"mpi-openmpi:{EVERY_RANK_ALONE}", "mpi-mpich:0,0,1")
THOROUGH = ["shm", "tcp", *THOROUGH_OVER_MPI[1:]]
# Those that see at once when a rank's process ends; across nodes MPI does not tell.
WATCHFUL = ["shm", "tcp", "mpi-mpich", slow("mpi-openmpi")]
# Each backend once, where types alone matter; what is compiled for mpi is the same on all paths.
TYPED_POINTS = grid([("local", 1), ("shm", 2), ("tcp", 2), ("mpi-mpich", 2)])
# Wrong arguments: many in each test.
ARGUMENT_POINTS = grid(
    [("local", 1), ("shm", 1), ("shm", 3), ("tcp", 1), ("tcp", 3), ("mpi-mpich:0,1", 3)],
    [("mpi-openmpi", 1), ("mpi-mpich", 3), (f"mpi-openmpi:{EVERY_RANK_ALONE}", 3)],
)
OUR_GRID = Grid(
    points=POINTS,
    thorough_points=THOROUGH_POINTS,
    argument_points=ARGUMENT_POINTS,
    typed_points=TYPED_POINTS,
    backends=BACKENDS,
    thorough_backends=THOROUGH,
    watchful_backends=WATCHFUL,
    smallest_buffers={**SMALL_BUFFERS, "COBRE_TCP_STAR_BYTES": "0"},
    small_buffers={**SMALL_BUFFERS, "COBRE_TCP_STAR_BYTES": "4096"},
    timeout_variables=TIMEOUTS,
)
timeout_of = OUR_GRID.timeout_of
