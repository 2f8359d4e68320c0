"""Mistakes that users make, and the sentence by which Python or compiled code answers each."""

import traceback

import numpy as np
import pytest
from numba import TypingError, njit

from cobre_comm import LocalBackend
from cobre_comm.arguments.other_names import SAID
from cobre_comm.testing.cases.raised import raises
from tests.command import python
from tests.forked import on_forks

LONGEST = 800  # the most characters that numba may print, with our sentence
HAS = (
    "; it has allgather, allgatherv, allreduce, barrier, broadcast, exact_sum, gatherv, max, min, "
    "sum, enter_phase, is_leader, rank, share, shares, size, stop_requested"
)
# A mistake, what Python says about it, and what compiled code says about it.
FORMS = [
    (
        lambda comm, x: comm.allgatherv(x, x),
        "allgatherv() missing 2 required positional arguments: 'counts' and 'displs'",
        "allgatherv(send, recv, counts, displs): missing a required argument: 'counts'",
    ),
    (
        lambda comm, x: comm.allgatherv(x, x, x, x, 0),
        "allgatherv() takes 5 positional arguments but 6 were given",
        "allgatherv(send, recv, counts, displs): too many positional arguments",
    ),
    (
        lambda comm, x: comm.allreduce(x, x, operation=1),
        "allreduce() got an unexpected keyword argument 'operation'",
        "allreduce(send, recv, op=0): got an unexpected keyword argument 'operation'",
    ),
    (
        lambda comm, x: comm.broadcast(x, 0, root=0),
        "broadcast() got multiple values for argument 'root'",
        "broadcast(buf, root=0): multiple values for argument 'root'",
    ),
    (
        lambda comm, x: comm.sum(),
        "sum() missing 1 required positional argument: 'x'",
        "sum(x): missing a required argument: 'x'",
    ),
]
COMPILED = [
    (lambda comm, x: comm.barrier(1), "barrier(): too many positional arguments"),
    (lambda comm, x: comm.bcast(x), f"comm.bcast {SAID['bcast']}"),
    (lambda comm, x: comm.Get_rank(), "comm.Get_rank is comm.rank here"),
    (
        lambda comm, x: comm.barier(),
        "a communicator has no 'barier' in @njit code (did you mean barrier?)" + HAS,
    ),
    (lambda comm, x: comm.close(), "a communicator has no 'close' in @njit code" + HAS),
]
VALUES = [
    (
        lambda comm, x: comm.sum(x),
        "; reduce an array by comm.allreduce(send, recv, ReduceOp.SUM)",
    ),
    (
        lambda comm, x: comm.min(x),
        "; reduce an array by comm.allreduce(send, recv, ReduceOp.MIN)",
    ),
]
PYTHON = [
    (
        lambda comm, objects: comm.broadcast(objects),
        "broadcast: buf holds Python objects (object); use a fixed-size dtype, or "
        "cobre_comm.objects.broadcast",
    ),
    (
        lambda comm, objects: comm.allgatherv(objects, objects, [1], [0]),
        "allgatherv: send holds Python objects (object); use a fixed-size dtype, or "
        "cobre_comm.objects.allgather",
    ),
    (
        lambda comm, objects: comm.create_shared_region(3, object),
        "dtype object holds Python objects; use a dtype of fixed size",
    ),
    (
        lambda comm, objects: comm.create_shared_region([10, 10]),
        "create_shared_region: shape must be an integer or a tuple of integers, got list [10, 10]",
    ),
]


@pytest.fixture
def comm():
    with LocalBackend() as comm:
        yield comm
        comm.barrier()


def told_compiled(function, *arguments):
    """Return the lines of numba's error, which must be short."""
    told = str(raises(TypingError, njit(function), *arguments))
    assert len(told) < LONGEST, told
    return told.splitlines()


@pytest.mark.parametrize(("mistake", "told", "told_by_compiled_code"), FORMS)
def test_a_call_whose_arguments_do_not_fit_is_told_the_argument(
    comm, mistake, told, told_by_compiled_code
):
    error = raises(TypeError, mistake, comm, np.ones(1))
    assert str(error).endswith(f".{told}")
    assert told_by_compiled_code in told_compiled(mistake, comm, np.ones(1))


def test_an_error_of_a_call_shows_the_line_of_the_caller_and_one_of_this_package(comm):
    trace = raises(TypeError, comm.create_shared_region).__traceback__
    assert len(traceback.extract_tb(trace)) == 2


@pytest.mark.parametrize(("mistake", "sentence"), COMPILED)
def test_compiled_code_is_told_in_one_line(comm, mistake, sentence):
    assert sentence in told_compiled(mistake, comm, np.ones(1))


def test_a_region_s_methods_likewise(comm):
    def mistake(region):
        return region.part(1)

    region = comm.create_shared_region(3)
    told = str(raises(TypeError, mistake, region))
    assert told.endswith(".part() missing 1 required positional argument: 'stop'")
    said = "part(start, stop): missing a required argument: 'stop'"
    assert said in told_compiled(mistake, region)


@pytest.mark.parametrize(("mistake", "sentence"), VALUES)
def test_an_array_in_place_of_a_number_is_told_of_allreduce(comm, mistake, sentence):
    for function in (mistake, njit(mistake)):
        assert str(raises(TypeError, function, comm, np.ones(2))).endswith(sentence)


NO_ARRAY = [  # in each of these calls, x is a list
    (
        lambda comm, x: comm.broadcast(x),
        "; numpy.array makes one of numbers, and cobre_comm.objects.broadcast sends other objects",
    ),
    (
        lambda comm, x: comm.gatherv(x, x, (1,), (0,)),
        "; numpy.array makes one of numbers, and cobre_comm.objects.gather sends other objects",
    ),
    (
        lambda comm, x: comm.allreduce(x, x),
        "; numpy.array makes one, and comm.sum, comm.min and comm.max reduce one number",
    ),
    (lambda comm, x: comm.exact_sum(x), "; numpy.array makes one"),
    (lambda comm, x: comm.sum(x), "; reduce an array by comm.allreduce(send, recv, ReduceOp.SUM)"),
]


# this warning is about lists
@pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")
@pytest.mark.parametrize(("mistake", "sentence"), NO_ARRAY)
def test_a_list_is_told_what_to_pass(comm, mistake, sentence):
    for function in (mistake, njit(mistake)):
        error = raises(TypeError, function, comm, [1.0])
        assert str(error).endswith(sentence)
        assert error.__notes__ == ["more: cobre-comm explain list"]


NOTED = [
    (lambda comm, x, out: comm.broadcast(x, 1.0), "integer"),
    (lambda comm, x, out: comm.allreduce(x, out.astype(np.float32)), "dtype"),
    (lambda comm, x, out: comm.allreduce(x, out, 1.5), "ReduceOp"),
    (lambda comm, x, out: comm.allreduce(x, out, 100), "ReduceOp"),
    (lambda comm, x, out: comm.allreduce(x[::2], out[::2]), "contiguous"),
    (lambda comm, x, out: comm.allgatherv(x, out, x, x), "counts"),
    (lambda comm, x, out: comm.share(2.0), "integer"),
]


@pytest.mark.parametrize(("mistake", "word"), NOTED)
def test_an_error_of_arguments_names_its_section(comm, mistake, word):
    for function in (mistake, njit(mistake)):
        error = raises((TypeError, ValueError), function, comm, np.ones(4), np.ones(4))
        assert type(error) in (TypeError, ValueError)
        assert error.__notes__ == [f"more: cobre-comm explain {word}"]


def test_values_that_are_of_no_use_say_what_is(comm):
    for mistake, sentence in PYTHON:
        assert str(raises(TypeError, mistake, comm, np.array([None]))) == sentence


@on_forks(2, "shm", "tcp")
def test_other_backends_likewise(comm):
    for mistake, sentence in PYTHON:
        assert str(raises(TypeError, mistake, comm, np.array([None]))) == sentence


@on_forks(2, "shm", "tcp")
def test_more_axes_than_numpy_has_are_refused_before_ranks_agree(comm):
    told = str(raises(ValueError, comm.create_shared_region, (1,) * 64, (float, 2)))
    assert told == "create_shared_region: NumPy arrays have at most 64 axes, got 65"
    comm.barrier()


@pytest.mark.parametrize("name", SAID)
def test_names_of_mpi4py_say_what_is_ours(comm, name):
    assert str(raises(AttributeError, getattr, comm, name)) == f"comm.{name} {SAID[name]}"
    assert not hasattr(type(comm), name)
    assert name not in dir(comm)


def test_other_misspellings_are_told_what_is_meant():
    """A misspelling is answered by Python itself, which suggests a name that ``dir`` lists."""
    told = python("-c", "from cobre_comm import LocalBackend; LocalBackend().barier()", code=1)
    assert "Did you mean: 'barrier'" in told.stderr


def test_truth_in_compiled_code(comm):
    @njit
    def both(comm, region):
        return 1 if comm and region else 0

    assert both(comm, comm.create_shared_region(0)) == 1


def test_text_in_compiled_code(comm):
    @njit
    def text(value):
        return f"{value}"

    region = comm.create_shared_region(3)
    for value, words in ((comm, "rank {comm.rank} of {comm.size}"), (region, "{region.count}")):
        told = str(raises(TypeError, text, value))
        assert words in told
        assert len(told) < 120
