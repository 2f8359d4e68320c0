"""Arguments that are wrong: each raises what it should and leaves the communicator usable."""

import warnings

import numpy as np
from numba import njit

from cobre_comm import InvalidBufferSize, InvalidCommunicator, InvalidRoot, ReduceOp
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import QUICK, WHOLE, Case
from cobre_comm.testing.cases.collectives.barrier import three_barriers
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row

WRONG = (TypeError, ValueError)


def _read_only(array):
    array.flags.writeable = False
    return array


def _allgatherv_cases(rank, size):
    """Yield (name, arguments, exception)."""
    send, recv = np.zeros(2), np.zeros(2 * size + 4)
    counts = np.full(size, 2)
    displs = 2 * np.arange(size)

    def changed(table, value):
        copy = table.copy()
        copy[-1] = value
        return copy

    yield "strided send", (np.zeros(4)[::2], recv, counts, displs), ValueError
    yield "strided recv", (send, np.zeros(4 * size)[::2], counts, displs), ValueError
    yield "read-only recv", (send, _read_only(np.zeros(2 * size)), counts, displs), ValueError
    yield "dtypes", (send, np.zeros(2 * size, np.float32), counts, displs), TypeError
    yield "signedness", (np.zeros(2, "i8"), np.zeros(2 * size, "u8"), counts, displs), TypeError
    yield "long send", (np.zeros(3), recv, counts, displs), InvalidBufferSize
    yield "short send", (np.zeros(1), recv, counts, displs), InvalidBufferSize
    yield "short counts", (send, recv, counts[:-1].copy(), displs), InvalidBufferSize
    yield "long counts", (send, recv, np.append(counts, 0), displs), InvalidBufferSize
    yield "long displs", (send, recv, counts, np.append(displs, 0)), InvalidBufferSize
    yield "no tables", (send, recv, counts[:0].copy(), displs[:0].copy()), InvalidBufferSize
    yield "negative count", (send, recv, changed(counts, -1), displs), InvalidBufferSize
    yield "negative displacement", (send, recv, counts, changed(displs, -1)), InvalidBufferSize
    yield "outside", (send, recv, counts, changed(displs, recv.size - 1)), InvalidBufferSize
    yield "far outside", (send, recv, counts, changed(displs, 2**62)), InvalidBufferSize
    yield "huge count", (send, recv, changed(counts, 2**63 - 1), displs), InvalidBufferSize
    yield "short recv", (send, np.zeros(2 * size - 1), counts, displs), InvalidBufferSize
    yield "float counts", (send, recv, counts.astype("f8"), displs), TypeError
    yield "2-D counts", (send, recv, counts.reshape(1, -1), displs), ValueError
    yield "no counts", (send, recv, None, displs), ValueError
    yield "a number", (send, recv, counts, 2), ValueError
    yield "bools", (send, recv, (True,) * size, displs), TypeError
    yield "nested", (send, recv, ((2,),) * size, displs), ValueError
    yield "2**63", (send, recv, np.full(size, 2**63, "u8"), displs), ValueError
    yield "2**63 in a tuple", (send, recv, (np.uint64(2**63),) * size, displs), ValueError
    overlapping = np.zeros(2 * size + 4)
    yield "overlap", (overlapping[2 * rank + 1 :][:2], overlapping, counts, displs), ValueError
    yield "inside gap", (overlapping[2 * size :][:2], overlapping, counts, displs), ValueError
    if size > 1:
        yield "blocks overlap", (send, recv, counts, changed(displs, 1)), ValueError


def _gatherv_cases(rank, size):
    """Every rank is its own root: what is wrong is seen before any communication."""
    alike = (
        "strided recv",
        "dtypes",
        "long send",
        "short counts",
        "outside",
        "2-D counts",
        "overlap",
    )
    for name, arguments, error in _allgatherv_cases(rank, size):
        if name in alike:
            yield name, (*arguments, rank), error
    send, recv, table = np.zeros(1), np.zeros(size), np.ones(size, np.int64)
    yield "no recv", (send, None, table, table, rank), TypeError
    yield "root too large", (send, recv, table, table, size), InvalidRoot
    yield "root negative", (send, None, None, None, -1), InvalidRoot
    yield "root float", (send, recv, table, table, 0.0), TypeError
    if size > 1:
        yield "strided send", (np.zeros(4)[::2], None, None, None, (rank + 1) % size), ValueError


def _allreduce_cases():
    send, recv, op = np.ones(4), np.zeros(4), ReduceOp.SUM
    yield "strided send", (np.zeros(8)[::2], recv, op), ValueError
    yield "strided recv", (send, np.zeros(8)[::2], op), ValueError
    yield "transposed", (np.zeros((3, 4)).T, np.zeros((3, 4)).T, op), ValueError
    yield "read-only recv", (send, _read_only(np.zeros(4)), op), ValueError
    yield "dtypes", (send, np.zeros(4, np.float32), op), TypeError
    yield "sum of bool", (np.zeros(4, "?"), np.zeros(4, "?"), op), ValueError
    yield "product of bool", (np.zeros(4, "?"), np.zeros(4, "?"), ReduceOp.PROD), ValueError
    yield "datetime", (np.zeros(4, "M8[D]"), np.zeros(4, "M8[D]"), op), TypeError
    yield "short recv", (send, np.zeros(3), op), InvalidBufferSize
    yield "empty", (np.zeros(0), np.zeros(0), op), InvalidBufferSize
    shared = np.zeros(9)
    yield "overlap", (shared[:4], shared[3:7], op), ValueError
    yield "op 7", (send, recv, 7), ValueError
    yield "op 2**63", (send, recv, np.uint64(2**63)), ValueError
    yield "op -1", (send, recv, -1), ValueError
    yield "op 1.5", (send, recv, 1.5), TypeError
    yield "op True", (send, recv, True), TypeError
    yield "op name", (send, recv, "sum"), TypeError
    yield "op None", (send, recv, None), TypeError
    complexes = np.zeros(4, np.complex128)
    for op in (ReduceOp.MIN, ReduceOp.PROD, ReduceOp.LOR):
        yield f"complex {op.name}", (complexes, complexes.copy(), op), WRONG
    octets = np.zeros(33, np.uint8)[1:]
    yield "unaligned", (octets.view("f8"), np.zeros(4), op), WRONG


def _broadcast_cases(rank, size):
    buf = np.zeros(4)
    yield "strided", (np.zeros(8)[::2], 0), ValueError
    yield "root too large", (buf, size), InvalidRoot
    yield "root negative", (buf, -1), InvalidRoot
    yield "root far too large", (buf, 2**40), InvalidRoot
    yield "root 2**63", (buf, np.uint64(2**63)), InvalidRoot
    yield "root float", (buf, 0.0), TypeError
    yield "root True", (buf, True), TypeError
    yield "root name", (buf, "0"), TypeError
    if rank != 0:
        yield "read-only", (_read_only(np.zeros(4)), 0), ValueError


def _allgather_cases(rank, size):
    send, recv = np.zeros(2), np.zeros(2 * size)
    yield "strided send", (np.zeros(4)[::2], recv), ValueError
    yield "read-only recv", (send, _read_only(np.zeros(2 * size))), ValueError
    yield "dtypes", (send, np.zeros(2 * size, np.float32)), TypeError
    yield "short recv", (send, recv[:-1].copy()), InvalidBufferSize
    yield "long recv", (send, np.zeros(2 * size + 1)), InvalidBufferSize
    yield "empty send", (send[:0].copy(), recv), InvalidBufferSize
    if size > 1:
        yield "another's block", (recv[2 * (rank - 1) :][:2], recv), ValueError


def _number_cases():
    yield "text", ("1",), TypeError
    yield "None", (None,), TypeError
    yield "bool", (True,), TypeError
    yield "complex", (1j,), TypeError
    yield "an array", (np.zeros(1),), TypeError
    yield "2**63", (np.uint64(2**63),), ValueError


def _python_cases(rank, size):
    """What cannot even be an argument of compiled code, or is of no use there."""
    send, recv = [1.0, 2.0], np.zeros(2 * size)
    counts, displs = [2] * size, [2 * r for r in range(size)]
    objects = np.array([None, 1], dtype=object)
    yield "allgatherv", "list", (send, recv, counts, displs), TypeError
    yield "allgatherv", "objects", (objects, np.zeros(2 * size, object), counts, displs), TypeError
    for number in (2**70, -(2**63) - 1):
        yield "sum", str(number), (number,), ValueError
    yield "allgather", "list", (send, recv), TypeError
    good = np.zeros(2)
    yield "allgatherv", "text", (good, recv, "2" * size, displs), ValueError
    yield "allgatherv", "too big", (good, recv, [2**70] * size, displs), ValueError
    yield "allgatherv", "2**63", (good, recv, [2**63] + [2] * (size - 1), displs), ValueError
    yield "allgatherv", "bools", (good, recv, [True] * size, displs), TypeError
    yield "allgatherv", "2-D", (good, recv, [[2]] * size, displs), ValueError
    yield "allreduce", "list", ([1.0], np.zeros(1), ReduceOp.SUM), TypeError
    yield "allreduce", "scalar", (1.0, np.zeros(1), ReduceOp.SUM), TypeError
    yield "allreduce", "objects", (objects, objects.copy(), ReduceOp.SUM), TypeError
    swapped = np.zeros(3, ">f8")
    yield "allreduce", "byte order", (swapped, swapped.copy(), ReduceOp.SUM), TypeError
    half = np.zeros(3, "f2")
    yield "allreduce", "float16", (half, half.copy(), ReduceOp.SUM), TypeError
    long = np.zeros(3, "g")
    yield "allreduce", "longdouble", (long, long.copy(), ReduceOp.SUM), TypeError
    yield "broadcast", "list", ([1.0],), TypeError
    yield "broadcast", "objects", (objects,), TypeError
    yield "broadcast", "bytearray", (bytearray(4),), TypeError
    yield "broadcast", "huge root", (np.zeros(2), 2**70), (InvalidRoot, *WRONG)
    yield "broadcast", "no size", (np.zeros(3, "V0"),), TypeError
    if rank != 0:
        yield "broadcast", "bytes", (np.frombuffer(b"12345678", np.uint8),), ValueError


def _check(comm, caller, operation, cases):
    """Raise for every case that does not behave; return how many there were."""
    problems, seen = [], 0
    for name, arguments, error in cases:
        seen += 1
        label = f"{operation}, {name}, {caller}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                getattr(calls(caller, comm.rank), operation)(comm, *arguments)
        except error as caught:
            if not str(caught).startswith((operation, "root ")) and caller != "njit":
                problems.append(f"{label}: the message does not say where: {caught}")
        except Exception as caught:
            problems.append(f"{label}: {type(caught).__name__}: {caught}"[:300])
        else:
            problems.append(f"{label}: nothing was raised")
    assert not problems, "\n".join(problems)
    return seen


def wrong_arguments(comm, caller, operation):
    cases = {
        "allgatherv": lambda: _allgatherv_cases(comm.rank, comm.size),
        "allreduce": _allreduce_cases,
        "broadcast": lambda: _broadcast_cases(comm.rank, comm.size),
        "gatherv": lambda: _gatherv_cases(comm.rank, comm.size),
        "allgather": lambda: _allgather_cases(comm.rank, comm.size),
        "sum": _number_cases,
        "max": _number_cases,
    }[operation]
    for name, arguments, error in cases():
        _check(comm, caller, operation, [(name, arguments, error)])
    four_in_a_row(comm, caller)


def wrong_python_arguments(comm):
    for operation, name, arguments, error in _python_cases(comm.rank, comm.size):
        _check(comm, "python", operation, [(name, arguments, error)])
    four_in_a_row(comm, "python")


def usable_after_each(comm, caller):
    """One misuse, one collective that works, and again."""
    for name, arguments, error in _allreduce_cases():
        _check(comm, caller, "allreduce", [(name, arguments, error)])
        three_barriers(comm, caller)


def fields_of_argument_errors(comm, caller):
    made = calls(caller, comm.rank)
    size = comm.size
    tables = np.full(size, 2), 2 * np.arange(size)
    caught = {}
    for name, call in {
        "root": lambda: made.broadcast(comm, np.zeros(2), size + 3),
        "lengths": lambda: made.allreduce(comm, np.zeros(4), np.zeros(3), ReduceOp.SUM),
        "send": lambda: made.allgatherv(comm, np.zeros(5), np.zeros(2 * size), *tables),
        "tables": lambda: made.allgatherv(
            comm, np.zeros(2), np.zeros(2 * size), np.append(tables[0], 1), tables[1]
        ),
        "negative": lambda: made.allgatherv(
            comm, np.zeros(2), np.zeros(2 * size), tables[0], tables[1] - 1
        ),
        "empty": lambda: made.allreduce(comm, np.zeros(0), np.zeros(0), ReduceOp.SUM),
    }.items():
        try:
            call()
        except (InvalidRoot, InvalidBufferSize) as error:
            caught[name] = error
    assert (caught["root"].root, caught["root"].size) == (size + 3, size)
    lengths = caught["lengths"]
    assert (lengths.operation, {lengths.expected, lengths.actual}) == ("allreduce", {3, 4})
    send = caught["send"]
    assert (send.operation, send.expected, send.actual) == ("allgatherv", 2, 5)
    assert (caught["tables"].expected, caught["tables"].actual) == (size, size + 1)
    assert (caught["negative"].expected, caught["negative"].actual) == (0, -1)
    assert (caught["empty"].expected, caught["empty"].actual) == (1, 0)


def tables_of_every_kind(comm, caller):
    """Vectors of integers of every kind; and elements whose fields are in any order, or overlap."""
    made, size = calls(caller, comm.rank), comm.size
    anyhow = {"names": ["a", "b"], "formats": ["f8", "i4"], "itemsize": 16}
    for offsets in ([8, 0], [0, 4]):
        send = np.full(2, comm.rank + 1, np.uint8).repeat(16).view({**anyhow, "offsets": offsets})
        for counts, displs in (
            ((np.int32(2), *[np.uint64(2)] * (size - 1)), np.arange(0, 2 * size, 2)),
            ([2] * size, tuple(range(0, 2 * size, 2))),
            (np.full(size, 2, np.uint64), np.arange(0, 4 * size, 2)[:size]),
        ):
            recv = np.zeros(2 * size, send.dtype)
            with warnings.catch_warnings(action="ignore"):  # numba is to drop its lists one day
                made.allgatherv(comm, send, recv, counts, displs)
            assert recv.tobytes() == bytes(r + 1 for r in range(size) for _ in range(32))


@njit(cache=True, nogil=True)
def _caught_in_compiled_code(comm, send, recv):
    try:
        comm.allreduce(send, recv, ReduceOp.SUM)
    except Exception:
        return 1
    return 0


def try_except_in_compiled_code(comm):
    assert _caught_in_compiled_code(comm, np.ones(4), np.ones(3)) == 1
    assert _caught_in_compiled_code(comm, np.ones(4), np.ones(4)) == 0
    four_in_a_row(comm, "njit")
    comm.close()
    assert _caught_in_compiled_code(comm, np.ones(4), np.ones(4)) == 1


def closed(comm, caller):
    """Every collective of a closed communicator says that it is closed."""
    comm.barrier()
    comm.close()
    comm.close()
    made, size = calls(caller, comm.rank), comm.size
    tables = np.ones(size, np.int64), np.arange(size)
    told = {}
    for name, arguments in {
        "barrier": (),
        "broadcast": (np.zeros(2), 0),
        "allreduce": (np.zeros(2), np.zeros(2), ReduceOp.SUM),
        "allgatherv": (np.zeros(1), np.zeros(size), *tables),
        "exact_sum": (np.zeros(2),),
        "allgather": (np.zeros(1), np.zeros(size)),
        "gatherv": (np.zeros(1), np.zeros(size), *tables),
        "sum": (1,),
        "min": (1.0,),
        "max": (1,),
    }.items():
        try:
            getattr(made, name)(comm, *arguments)
        except InvalidCommunicator as error:
            told[name] = str(error)
    assert 0 <= comm.rank < comm.size == size
    assert all("closed" in text for text in told.values())
    return sorted(told)


def all_are_closed(ran):
    silent = {*OPERATIONS, "barrier", "exact_sum", "min"} - set(ran.values[0])
    assert not silent, f"after close(), {', '.join(sorted(silent))} raised no error"


def case(name, body, over=None, **fields):
    fields = {"check": QUICK, **fields}
    return Case(name, body, over or {}, where="arguments", column="errors", **fields)


OPERATIONS = ["allgatherv", "allreduce", "broadcast", "allgather", "gatherv", "sum", "max"]
CASES = [
    case("wrong_arguments", wrong_arguments, {"operation": OPERATIONS}, callers=("python",)),
    case(
        "wrong_arguments_in_njit", wrong_arguments, {"operation": OPERATIONS}, callers=("njit",),
        check=WHOLE, timeout_s=120,
    ),
    case("arguments_that_only_python_has", wrong_python_arguments, callers=()),
    case("usable_after_each", usable_after_each, check=WHOLE),
    case("fields", fields_of_argument_errors),
    case("tables_of_every_kind", tables_of_every_kind, check=WHOLE),
    case(
        "try_except_in_compiled_code", try_except_in_compiled_code, callers=(), needs=("njit",),
        fresh=True, check=WHOLE,
    ),
    case("closed", closed, fresh=True, expect=all_are_closed),
]  # fmt: skip
