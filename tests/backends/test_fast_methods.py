"""Methods in compiled code take arguments as Python's own methods do."""

import inspect

import numpy as np
import pytest
from cobre_kernels.collective.from_python.objects import OBJECT
from numba import config

from cobre_comm import (
    Communicator,
    InvalidRoot,
    LocalBackend,
    MpiBackend,
    ReduceOp,
    ShmBackend,
    TcpBackend,
)
from cobre_comm.arguments import slow_path
from cobre_comm.backends.kernel_backend import KernelBackend

FOUR, ZERO = np.array([4]), np.array([0])
TABLES = {"counts": FOUR, "displs": ZERO}
PLAIN = {
    "op by position": lambda comm, send, recv: comm.allreduce(send, recv, ReduceOp.MIN),
    "op by name": lambda comm, send, recv: comm.allreduce(send, recv, op=ReduceOp.MAX),
    "all of allreduce": lambda comm, send, recv: comm.allreduce(send=send, recv=recv),
    "tables by name": lambda comm, send, recv: comm.allgatherv(
        send, recv, counts=FOUR, displs=ZERO
    ),
    "names in a dict": lambda comm, send, recv: comm.allgatherv(send, recv, **TABLES),
    "of the class": lambda comm, send, recv: type(comm).allreduce(comm, send, recv),
}
UNUSUAL = {
    "another order": lambda comm, send, recv: comm.allreduce(recv=recv, send=send),
    "a name made anew": lambda comm, send, recv: comm.allreduce(
        send, **{"".join(["re", "cv"]): recv}
    ),
    "an int for op": lambda comm, send, recv: comm.allreduce(send, recv, 2),
    "lists": lambda comm, send, recv: comm.allgatherv(send, recv, [4], displs=[0]),
}


@pytest.fixture
def comm():
    with LocalBackend() as comm:
        yield comm


@pytest.mark.parametrize("form", [*PLAIN, *UNUSUAL])
def test_every_form_of_a_call_is_served(comm, form):
    send, recv = np.arange(4.0), np.zeros(4)
    assert {**PLAIN, **UNUSUAL}[form](comm, send, recv) is None
    assert recv.tolist() == send.tolist()


@pytest.mark.skipif(config.DISABLE_JIT, reason="where nothing is compiled, Python serves all")
@pytest.mark.parametrize("form", PLAIN)
def test_python_has_no_part_in_a_plain_call(comm, form, monkeypatch):
    monkeypatch.delattr(slow_path, "allreduce_call")
    monkeypatch.delattr(slow_path, "blocks_call")
    PLAIN[form](comm, np.arange(4.0), np.zeros(4))


@pytest.mark.parametrize("cls", [LocalBackend, ShmBackend, TcpBackend, MpiBackend])
def test_one_class_below_has_the_record_in_the_first_slot(cls):
    """Methods in compiled code find the record by the offset of the object's first slot."""
    assert cls.__bases__ == (KernelBackend,)
    assert KernelBackend.__bases__ == (Communicator,)
    for own in (cls, type("Sub", (cls,), {})):
        unmade = own.__new__(own)
        unmade._KernelBackend__words = FOUR
        assert OBJECT.at(id(unmade)).words.address == id(FOUR)


WRONG = {
    "barrier": [lambda comm: comm.barrier(1), lambda comm: comm.barrier(root=0)],
    "broadcast": [
        lambda comm: comm.broadcast(),
        lambda comm: comm.broadcast(FOUR, 0, 0),
        lambda comm: comm.broadcast(FOUR, 0, root=0),
        lambda comm: comm.broadcast(FOUR, to=0),
        lambda comm: comm.broadcast(FOUR, True),
        lambda comm: comm.broadcast("text", root=0),
    ],
    "allreduce": [lambda comm: comm.allreduce(FOUR), lambda comm: comm.allreduce(FOUR, FOUR, 0, 0)],
    "allgatherv": [lambda comm: comm.allgatherv(FOUR, FOUR, FOUR)],
    "object": [
        lambda comm: LocalBackend.barrier(3),
        lambda comm: LocalBackend.allreduce(LocalBackend.__new__(LocalBackend), FOUR, FOUR),
    ],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_are_errors_and_change_nothing(comm, name):
    for call in WRONG[name]:
        with pytest.raises((TypeError, AttributeError)):
            call(comm)
    for root in (-1, 1, 2**62, 2**70, -(2**70)):
        with pytest.raises(InvalidRoot):
            comm.broadcast(FOUR, root)
    comm.barrier()


def test_a_subclass_overrides_a_method_and_calls_the_one_below():
    class Counting(LocalBackend):
        calls = 0

        def barrier(self):
            self.calls += 1
            super().barrier()

    with Counting() as counting, LocalBackend() as plain:
        counting.barrier()
        plain.barrier()
        counting.allreduce(FOUR, FOUR)
    assert counting.calls == 1


@pytest.mark.parametrize("name", ["barrier", "broadcast", "allreduce", "allgatherv"])
def test_methods_say_what_they_take(comm, name):
    method = getattr(LocalBackend, name)
    described = inspect.signature(method).parameters
    assert list(described) == list(inspect.signature(getattr(Communicator, name)).parameters)
    assert len(method.__doc__) > 20
