"""The fast path from Python to an entry: one method in compiled code per collective.

CPython calls the method by its convention for methods in C (``METH_NOARGS``, ``METH_FASTCALL``),
and passes the communicator, the address of the arguments, the number of arguments, and the names of
keywords. So no tuple is made, no attribute is looked up, and no number is boxed. The method reads
the few fields that it needs of a NumPy array (``objects.py``) and runs the entry. If arguments are
unusual, or if the entry returns another status than OK, the method calls a Python function, which
serves the call or raises. One compilation serves every dtype and every number of dimensions.
"""

from typing import NamedTuple

from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    Allgatherv,
    Allreduce,
    Barrier,
    Broadcast,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.from_python.objects import (
    ALIGNED,
    C_CONTIGUOUS,
    LOW_32,
    OBJECT,
    WRITEABLE,
    count_of,
    plain_dtype,
)
from cobre_kernels.collective.reduction.fold import SUM
from cobre_kernels.collective.status import OK, UNUSUAL_ARGUMENTS
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import WORD_BYTES, Record, pointer, record_at

ARGUMENTS = Record(
    "Arguments",
    "Arguments of a call, as CPython passes them: as many fields as the call has arguments.",
    first=pointer("Array", "the array to send or to broadcast, or another object"),
    second=pointer("Array", "the array that receives, the root of a broadcast, or another object"),
    third=pointer("Array", "a ReduceOp, the array of counts, or another object"),
    fourth=pointer("Array", "the array of displacements, or another object"),
)

_arguments_at = record_at(ARGUMENTS)


class Nothing(NamedTuple):
    """What CPython passes after the object to a method without arguments (``METH_NOARGS``)."""

    nothing: int


class Passed(NamedTuple):
    """What CPython passes after the object (``METH_FASTCALL | METH_KEYWORDS``).

    The fields are the address of the arguments, the number of arguments without a keyword, and the
    address of a tuple of keywords, or 0.
    """

    arguments: int
    count: int
    names: int


class LeftCall(NamedTuple):
    """A call that the fast path leaves to the slow path: its outcome, and what CPython passed."""

    operation: int
    outcome: int
    self: int
    arguments: int
    count: int
    names: int


@kernel(OBJECT, Nothing)
def barrier_method(self, nothing):
    """``barrier()``."""
    if self.words.address == 0:
        return libc.refuse_object()
    comm = self.words.comm
    outcome = run(comm.collectives[BARRIER].entry, comm, Barrier(BARRIER, 0))
    return _result(comm, self, Passed(0, 0, 0), BARRIER, outcome)


@kernel(OBJECT, Passed)
def broadcast_method(self, passed):
    """``broadcast(buf, root)``."""
    if self.words.address == 0:
        return libc.refuse_object()
    comm, arguments = self.words.comm, _arguments_at(passed.arguments)
    python = comm.python
    total = _total(python.broadcast_names, 2, passed)
    root = _integer(arguments.second, python.int_type) if total == 2 else 0
    outcome = UNUSUAL_ARGUMENTS
    if 1 <= total <= 2 and root >= 0:
        buffer = arguments.first
        needed = C_CONTIGUOUS if root == comm.rank else C_CONTIGUOUS | WRITEABLE
        dtype = plain_dtype(python, buffer, needed)
        if dtype > 0:
            size_bytes = count_of(buffer) * buffer.descr.itemsize
            call = Broadcast(buffer.data, size_bytes, dtype, root)
            outcome = run(comm.collectives[BROADCAST].entry, comm, call)
    return _result(comm, self, passed, BROADCAST, outcome)


@kernel(OBJECT, Passed)
def allreduce_method(self, passed):
    """``allreduce(send, recv, op)``."""
    if self.words.address == 0:
        return libc.refuse_object()
    comm, arguments = self.words.comm, _arguments_at(passed.arguments)
    python = comm.python
    total = _total(python.allreduce_names, 3, passed)
    op = _integer(arguments.third, python.op_type) if total == 3 else SUM
    outcome = UNUSUAL_ARGUMENTS
    if 2 <= total <= 3 and op >= 0:
        send, recv = arguments.first, arguments.second
        dtype = plain_dtype(python, send, C_CONTIGUOUS | ALIGNED)
        other = plain_dtype(python, recv, C_CONTIGUOUS | ALIGNED | WRITEABLE)
        if dtype == other and dtypes.BOOL <= dtype <= dtypes.COMPLEX128:
            send_count, recv_count, itemsize = count_of(send), count_of(recv), send.descr.itemsize
            call = Allreduce(send.data, send_count, recv.data, recv_count, itemsize, dtype, op)
            outcome = run(comm.collectives[ALLREDUCE].entry, comm, call)
    return _result(comm, self, passed, ALLREDUCE, outcome)


@kernel(OBJECT, Passed)
def allgatherv_method(self, passed):
    """``allgatherv(send, recv, counts, displs)``."""
    if self.words.address == 0:
        return libc.refuse_object()
    comm, arguments = self.words.comm, _arguments_at(passed.arguments)
    python = comm.python
    outcome = UNUSUAL_ARGUMENTS
    if _total(python.allgatherv_names, 4, passed) == 4:
        send, recv = arguments.first, arguments.second
        counts, displs = arguments.third, arguments.fourth
        dtype = plain_dtype(python, send, C_CONTIGUOUS)
        other = plain_dtype(python, recv, C_CONTIGUOUS | WRITEABLE)
        if dtype > 0 and dtype == other and _is_table(python, counts) and _is_table(python, displs):
            call = Allgatherv(
                send.data, count_of(send), recv.data, count_of(recv), send.descr.itemsize, dtype,
                counts.data, displs.data, counts.dimensions[0], displs.dimensions[0],
            )  # fmt: skip
            outcome = run(comm.collectives[ALLGATHERV].entry, comm, call)
    return _result(comm, self, passed, ALLGATHERV, outcome)


@routine
def _is_table(python, array):
    dtype = plain_dtype(python, array, C_CONTIGUOUS | ALIGNED)
    return dtype == dtypes.INT64 and array.axes & LOW_32 == 1


@routine
def _total(parameters, most, passed):
    """Return the number of arguments; -1 unless keywords name the next parameters in order."""
    if passed.names == 0:
        return passed.count
    named = libc.tuple_size(passed.names)
    if passed.count + named > most:
        return -1
    while named > 0:
        named -= 1
        if libc.tuple_item(passed.names, named) != parameters[passed.count + named]:
            return -1
    return passed.count + libc.tuple_size(passed.names)


@routine
def _integer(value, expected_type):
    """Return the value of an integer; -1 if it has another type, is negative, or is too large."""
    if value.type != expected_type:
        return -1
    number = libc.integer_of(value.address)
    if number < 0:
        libc.clear_exception()  # set by an integer too large; the slow path says what is wrong
        return -1
    return number


@routine
def _result(comm, self, passed, operation, outcome):
    """Return None, or the result of the slow path, which is 0 if the slow path has raised."""
    if outcome != OK:
        names = passed.names
        left = LeftCall(operation, outcome, self.address, passed.arguments, passed.count, names)
        return run(comm.python.slow_kernel, comm, left)
    libc.count_up(comm.python.none)
    return comm.python.none


@kernel(COMM, LeftCall)
def slow_kernel(comm, left):
    """Call the slow path with the operation, the outcome, the names and all values."""
    names = left.names if left.names != 0 else comm.python.none
    total = left.count + (libc.tuple_size(left.names) if left.names != 0 else 0)
    values = libc.new_tuple(4 + total)
    if values == 0:
        return 0
    libc.count_up(left.self)
    libc.set_item(values, 0, left.self)
    libc.set_item(values, 1, libc.new_integer(left.operation))  # CPython keeps small integers,
    libc.set_item(values, 2, libc.new_integer(left.outcome))  # so neither needs new memory
    libc.count_up(names)
    libc.set_item(values, 3, names)
    number = 0
    while number < total:
        value = peek(left.arguments + number * WORD_BYTES)
        libc.count_up(value)
        libc.set_item(values, 4 + number, value)
        number += 1
    result = libc.call_object(comm.python.slow_path, values)
    libc.count_down(values)
    return result


METHODS = {
    "barrier": barrier_method,
    "broadcast": broadcast_method,
    "allreduce": allreduce_method,
    "allgatherv": allgatherv_method,
}
