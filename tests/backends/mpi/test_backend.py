"""What is MpiBackend's alone: whose MPI it uses, when it begins and ends, what MPI reports."""

import subprocess
import sys
import time

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import BackendName, run_ranks, run_ranks_outcomes
from cobre_comm.testing.ranks.litter import remove_litter
from cobre_comm.testing.ranks.outcome import values_of
from tests.backends.mpi import bodies
from tests.backends.mpi.scripts import LIBRARIES, orphans
from tests.backends.test_shm_memory import GIB, available_gib, populate_and_weigh
from tests.grid import EVERY_RANK_ALONE, skip_unless_here, slow, why_not

ONE_NODE = [f"mpi-{library}" for library in LIBRARIES]
PATHS = [
    "mpi-mpich",
    f"mpi-openmpi:{EVERY_RANK_ALONE}",
    slow("mpi-openmpi"),
    slow("mpi-mpich:0,0,1"),
]
each_path = pytest.mark.parametrize("backend", PATHS)
each_library = pytest.mark.parametrize("backend", ONE_NODE)


def run(backend, size, body, *args, **keywords):
    """Run a body that makes its communicators itself."""
    skip_unless_here(backend)
    return values_of(run_ranks_outcomes(backend, size, body, *args, connect=False, **keywords))


@pytest.mark.skipif(bool(why_not(None)), reason="no MPI here")
def test_import_loads_no_mpi():
    code = (
        "import sys, cobre_comm; from cobre_comm import MpiBackend, available_backends\n"
        "print('mpi' in available_backends(), 'mpi4py.MPI' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "False"], done.stderr


@each_path
def test_sub_communicator_does_not_meet_the_callers_traffic(backend):
    run(backend, 4, bodies.sub_communicator)


@each_path
def test_overlapping_communicators(backend):
    run(backend, 4, bodies.two_halves_and_all)


@each_library
def test_what_is_no_intra_communicator_is_refused(backend):
    for caught in run(backend, 2, bodies.refusals):
        assert len(caught) == 4
        assert all("intra-communicator" in text for text in caught)


@each_path
def test_use_after_finalize(backend):
    for caught in run(backend, 2, bodies.after_finalize):
        assert len(caught) == 9, caught
        assert all("finalized" in text for text in caught)


@each_library
def test_thread_level_single_is_refused(backend):
    told = run(backend, 2, bodies.single_threaded)
    if told == [None, None]:
        pytest.skip(f"{backend} gives more than MPI_THREAD_SINGLE")
    assert all("MPI_THREAD_FUNNELED" in text and "thread_level" in text for text in told)


@each_path
def test_thread_level_funneled_is_enough(backend):
    run(backend, 3, bodies.funneled)


@each_library
def test_mpi_that_nobody_has_initialized(backend):
    assert all("mpi4py.rc.initialize" in text for text in run(backend, 2, bodies.not_initialized))


# What launchers set in the processes that they start; here nobody has started any.
ANNOUNCED = [
    {"PMI_SIZE": "4", "PMI_RANK": "0"},
    {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"},
    {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("variables", ANNOUNCED, ids=lambda variables: next(iter(variables)))
@pytest.mark.parametrize("choice", [slow("mpi"), "auto"])
def test_world_of_one_where_four_are_announced(library, variables, choice):
    if why_not(library):
        pytest.skip(why_not(library))
    from cobre_comm.processes.mpi.mpiexec import find_mpiexec
    from cobre_comm.testing.ranks.link import inherited_environment

    chosen = {"MPI4PY_MPIABI": library, "COBRE_COMM_BACKEND": choice}
    environment = find_mpiexec({**inherited_environment(), **chosen}).environment
    code = "import cobre_comm; cobre_comm.create_communicator()"
    began = time.time()
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environment, **variables},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    remove_litter(began)  # Open MPI itself leaves it, of every rank that no mpiexec has started
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert "InitializationFailed" in last
    assert all(word in last for word in ("world of 1 rank", f"{next(iter(variables))}=4")), last


def test_error_of_mpi_keeps_its_code_and_words():
    """Of MPICH, because Open MPI may be built without the check of arguments that errs here."""
    backend = "mpi-mpich:0,1"
    for caught, later, is_type_error, words in run(backend, 2, bodies.error_of_mpi):
        assert isinstance(caught, CollectiveFailed)
        assert caught.mpi_error_code != 0
        assert is_type_error
        assert words in str(caught)
        assert len(later) == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["mpi-openmpi", "mpi-mpich", "mpi-mpich:0,1"])
def test_more_communicators_in_turn_than_mpi_has(backend):
    """MPICH can have 2048 at the same time, each of ours has two or more of them."""
    run(backend, 2, bodies.many_in_turn, 1100, timeout_s=120)


@pytest.mark.parametrize("backend", [slow("mpi-mpich"), "mpi-mpich:0,1"])
def test_more_sub_communicators_in_turn_than_mpi_has(backend):
    run(backend, 2, bodies.many_parents_in_turn, 750, timeout_s=120)


@each_path
def test_communicators_and_regions_in_odd_orders(backend):
    before = orphans(BackendName.parse(backend).library)
    env = {"OMPI_MCA_mpi_show_handle_leaks": "1"}
    assert len(run(backend, 4, bodies.in_odd_orders, 13, env=env)) == 4
    assert orphans(BackendName.parse(backend).library) <= before


@each_library
def test_nothing_has_a_name_once_it_is_in_use(backend):
    before = orphans(BackendName.parse(backend).library)
    for names in run(backend, 2, bodies.names_in_shared_memory):
        assert set(names) <= set(map(str, before))


@pytest.mark.skipif(available_gib() < 4, reason="needs 4 GiB of free memory")
@pytest.mark.parametrize("backend", ["mpi-mpich", slow("mpi-openmpi")])
def test_four_ranks_hold_one_copy_of_a_region(backend):
    skip_unless_here(backend)
    grown = run_ranks(backend, 4, populate_and_weigh, GIB, timeout_s=120)
    assert 0.95 * GIB < sum(grown) < 1.1 * GIB
