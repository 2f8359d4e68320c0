"""Which backends and numbers of ranks the suites run on."""

import functools

import pytest

from cobre_comm import BackendError
from cobre_comm.testing import BackendName

SIZES = (1, 2, 3, 4, 7)
EVERY_RANK_ALONE = "0,1,2,3,4,5,6"
# What settles how long a collective waits, and how large its chunks are, whatever the backend.
TIMEOUTS = ("COBRE_SHM_TIMEOUT_SECS", "COBRE_TCP_TIMEOUT_SECS", "COBRE_MPI_TIMEOUT_SECS")
SMALL_BUFFERS = {"COBRE_SHM_BUFFER_BYTES": "4096", "COBRE_MPI_BUFFER_BYTES": "4096"}
MANY_CHUNKS = {**SMALL_BUFFERS, "COBRE_TCP_STAR_BYTES": "0"}
SMALL_STAR = {**SMALL_BUFFERS, "COBRE_TCP_STAR_BYTES": "4096"}


def timeout_of(seconds):
    return dict.fromkeys(TIMEOUTS, str(seconds))


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
CROWDED = [("shm", 7), ("tcp", 7)]  # on few cores they take as long as all others
GRID = grid(
    [point for point in [*WITHOUT_MPI, *MPI_QUICK] if point not in CROWDED],
    [*CROWDED, *MPI_SLOW],
)
# For what takes long at each of its points: each way of mpi once.
SHORT_GRID = grid(
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
EACH_ONCE = grid([("local", 1), ("shm", 2), ("tcp", 2), ("mpi-mpich", 2)])


@functools.cache
def why_not(library):
    """Return what keeps ranks of that MPI from starting here, or an empty string."""
    from cobre_comm.launcher.mpiexec import find_mpiexec
    from cobre_comm.testing.link import inherited_environment

    chosen = {"MPI4PY_MPIABI": library} if library else {}
    try:
        find_mpiexec({**inherited_environment(), **chosen})
    except BackendError as error:
        return str(error)
    return ""


def skip_unless_here(backend):
    """Skip the test if its backend is a kind of mpi that is not installed."""
    name = BackendName.parse(backend)
    if name.is_mpi and why_not(name.library):
        pytest.skip(f"{backend}: {why_not(name.library)}")
