"""How jobs under mpiexec end: by MPI_Finalize, by an exception, by the death of a rank."""

import itertools

import pytest

from tests.backends.mpi.scripts import LIBRARIES, left_since, orphans, run_script
from tests.grid import EVERY_RANK_ALONE, some

NODES = [None, EVERY_RANK_ALONE, "0,0,1"]
pytestmark = pytest.mark.slow  # each test starts processes; `make test` runs the suite's cases
SOON_S = 30.0  # a job that waits for rank 1 ends after its timeout of 60 s, or never
each_library = pytest.mark.parametrize("library", LIBRARIES)


def nodes_of(nodes):
    return {"COBRE_TEST_PRETEND_NODES": nodes} if nodes else {}


# Rank 1 ends in some way; the other ranks wait for it, in a call of ours or in MPI's.
ENDS = """
import os, signal, sys, time
from cobre_comm import CollectiveFailed, create_communicator
how, *elsewhere = sys.argv[1:]
comm = create_communicator()
comm.barrier()
if comm.rank == 1:
    if how == "raise":
        raise ZeroDivisionError("on purpose")
    if how == "abort":
        comm.abort(7)
    time.sleep(0.3)
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)
if elsewhere:
    from mpi4py import MPI
    MPI.COMM_WORLD.Barrier()  # nothing of ours can end it
try:
    comm.barrier()
except CollectiveFailed as error:
    sys.stdout.write(f"{comm.rank} met {error.ranks}\\n")
    sys.stdout.flush()
if how != "raise":
    os._exit(0)  # MPI cannot be finalized without rank 1
"""


@each_library
def test_exception_outside_our_calls_ends_the_job(library):
    done = run_script(library, 3, ENDS, "raise", "elsewhere")
    assert done.code == 1
    assert done.took_s < SOON_S
    assert "ZeroDivisionError: on purpose" in done.err
    assert "Traceback" in done.err


@each_library
@pytest.mark.parametrize("where", [[], ["elsewhere"]], ids=["ours", "elsewhere"])
@pytest.mark.parametrize("nodes", [None, "0,1"])
def test_abort_ends_the_job_with_its_code(library, where, nodes):
    done = run_script(library, 3, ENDS, "abort", *where, env=nodes_of(nodes))
    assert done.code == 7, done
    assert done.took_s < SOON_S
    assert "cobre-comm: rank 1 called abort(7)" in done.err
    assert "met" not in done.out


@pytest.mark.parametrize(
    ("library", "nodes"),
    some([("openmpi", None), ("mpich", "0,1")], itertools.product(LIBRARIES, [None, "0,1"])),
)
def test_abort_can_be_turned_off(library, nodes):
    env = {"COBRE_MPI_ABORT": "0", **nodes_of(nodes)}
    done = run_script(library, 2, ENDS, "raise", env=env)
    assert "0 met (1,)" in done.out, done
    assert "ZeroDivisionError: on purpose" in done.err
    assert done.code != 0
    assert done.took_s < SOON_S


ODD_ORDERS = """
import sys
from tests.backends.mpi.test_backend import in_odd_orders
in_odd_orders(None, 7)
if "window" in sys.argv:
    from mpi4py import MPI
    window = MPI.Win.Allocate_shared(100, 1, comm=MPI.COMM_WORLD)
"""
LEAKS = {"OMPI_MCA_mpi_show_handle_leaks": "1"}  # names what is still allocated at the end


@each_library
@pytest.mark.parametrize("nodes", NODES)
def test_nothing_is_left_at_the_end(library, nodes):
    """Communicators that are open at the end of the program are freed, too."""
    before = orphans(library)
    done = run_script(library, 3, ODD_ORDERS, env=LEAKS | nodes_of(nodes))
    assert done.code == 0, done.err
    assert "still allocated" not in done.err + done.out
    assert library == "openmpi" or done.err == ""
    assert left_since(before, library) == set()


def test_open_mpi_would_tell():
    done = run_script("openmpi", 2, ODD_ORDERS, "window", env=LEAKS)
    assert "still allocated" in done.err + done.out


@pytest.mark.parametrize(
    ("library", "nodes", "how"),
    some(
        [("openmpi", "0,0,1", "kill"), ("mpich", None, "exit")],
        itertools.product(LIBRARIES, NODES, ["kill", "exit"]),
    ),
)
def test_death_of_a_rank_ends_the_job(library, nodes, how):
    done = run_script(library, 3, ENDS, how, env=nodes_of(nodes))
    assert done.took_s < SOON_S
    assert done.code != 0


# How mpiexec is told not to end the other ranks, and how rank 1 ends. Hydra, which is MPICH's
# mpiexec, lets the others run with this option if rank 1 exits, but not if rank 1 is killed.
ALONE = {
    "openmpi": (["--runtime-options", "continuous"], "kill"),
    "mpich": (["-disable-auto-cleanup"], "exit"),
}


@each_library
def test_survivors_name_the_dead_where_mpiexec_lets_them(library):
    options, how = ALONE[library]
    done = run_script(library, 3, ENDS, how, options=options)
    assert sorted(done.out.split("\n")[:2]) == ["0 met (1,)", "2 met (1,)"], done
    assert done.took_s < SOON_S
