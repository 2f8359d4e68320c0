"""The table of wrong calls: for each collective a name, arguments, and the exception."""

import numpy as np

from cobre_comm import InvalidBufferSize, InvalidRoot, ReduceOp

WRONG = (TypeError, ValueError)


def _read_only(array):
    array.flags.writeable = False
    return array


def allgatherv(rank, size):
    """Yield the name, the arguments and the exception of each wrong call."""
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


def gatherv(rank, size):
    """Each rank names itself as the root, so each finds every mistake before it communicates."""
    alike = (
        "strided recv",
        "dtypes",
        "long send",
        "short counts",
        "outside",
        "2-D counts",
        "overlap",
    )
    for name, arguments, error in allgatherv(rank, size):
        if name in alike:
            yield name, (*arguments, rank), error
    send, recv, table = np.zeros(1), np.zeros(size), np.ones(size, np.int64)
    yield "no recv", (send, None, table, table, rank), TypeError
    yield "root too large", (send, recv, table, table, size), InvalidRoot
    yield "root negative", (send, None, None, None, -1), InvalidRoot
    yield "root float", (send, recv, table, table, 0.0), TypeError
    if size > 1:
        yield "strided send", (np.zeros(4)[::2], None, None, None, (rank + 1) % size), ValueError


def allreduce(rank, size):
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
    yield "op too large", (send, recv, len(ReduceOp)), ValueError
    yield "op 2**63", (send, recv, np.uint64(2**63)), ValueError
    yield "op -1", (send, recv, -1), ValueError
    yield "op 1.5", (send, recv, 1.5), TypeError
    yield "op True", (send, recv, True), TypeError
    yield "op name", (send, recv, "sum"), TypeError
    yield "op None", (send, recv, None), TypeError
    complexes = np.zeros(4, np.complex128)
    for op in (ReduceOp.MIN, ReduceOp.PROD, ReduceOp.LOR, ReduceOp.BOR):
        yield f"complex {op.name}", (complexes, complexes.copy(), op), WRONG
    for op in (ReduceOp.BAND, ReduceOp.BOR):
        yield f"{op.name} of floats", (send, recv, op), ValueError
        yield f"{op.name} of float32", (send.astype("f4"), recv.astype("f4"), op), ValueError
    octets = np.zeros(33, np.uint8)[1:]
    yield "unaligned", (octets.view("f8"), np.zeros(4), op), WRONG


def broadcast(rank, size):
    buf = np.zeros(4)
    yield "strided", (np.zeros(8)[::2], 0), ValueError
    yield "root too large", (buf, size), InvalidRoot
    yield "root negative", (buf, -1), InvalidRoot
    yield "root far too large", (buf, 2**40), InvalidRoot
    yield "root 2**63", (buf, np.uint64(2**63)), InvalidRoot
    yield "root float", (buf, 0.0), TypeError
    yield "root True", (buf, True), TypeError
    yield "root name", (buf, "0"), TypeError
    if size > 1:
        yield "read-only", (_read_only(np.zeros(4)), (rank + 1) % size), ValueError


def allgather(rank, size):
    send, recv = np.zeros(2), np.zeros(2 * size)
    yield "strided send", (np.zeros(4)[::2], recv), ValueError
    yield "read-only recv", (send, _read_only(np.zeros(2 * size))), ValueError
    yield "dtypes", (send, np.zeros(2 * size, np.float32)), TypeError
    yield "short recv", (send, recv[:-1].copy()), InvalidBufferSize
    yield "long recv", (send, np.zeros(2 * size + 1)), InvalidBufferSize
    yield "empty send", (send[:0].copy(), recv), InvalidBufferSize
    if size > 1:
        yield "another's block", (recv[2 * (rank - 1) :][:2], recv), ValueError


def number(rank, size):
    yield "text", ("1",), TypeError
    yield "None", (None,), TypeError
    yield "bool", (True,), TypeError
    yield "complex", (1j,), TypeError
    yield "an array", (np.zeros(1),), TypeError
    yield "2**63", (np.uint64(2**63),), ValueError


def exact_sum(rank, size):
    yield "int64", (np.zeros(4, np.int64),), TypeError
    yield "complex", (np.zeros(4, np.complex128),), TypeError
    yield "strided", (np.zeros((4, 4))[:, 1],), ValueError
    yield "unaligned", (np.zeros(81, np.uint8)[1:].view("f8"),), ValueError


def share(rank, size):
    yield "negative", (-1,), ValueError
    yield "too many", (2**62 + 1,), ValueError
    yield "2**63", (np.uint64(2**63),), ValueError
    yield "float", (4.0,), TypeError
    yield "bool", (True,), TypeError
    yield "None", (None,), TypeError


def shares(rank, size):
    for name, (n,), error in share(rank, size):
        yield name, (n, 1), error
        yield f"{name} as width", (1, n), error
    yield "too many elements", (2**32, 2**31), ValueError
    yield "wraps to 0", (2**32, 2**32), ValueError


BY_OPERATION = {
    "allgatherv": allgatherv,
    "allreduce": allreduce,
    "broadcast": broadcast,
    "allgather": allgather,
    "gatherv": gatherv,
    "sum": number,
    "max": number,
    "exact_sum": exact_sum,
    "share": share,
    "shares": shares,
}


def python(rank, size):
    """Wrong calls for Python alone: compiled code cannot take their arguments."""
    send, recv = [1.0, 2.0], np.zeros(2 * size)
    counts, displs = [2] * size, [2 * r for r in range(size)]
    objects = np.array([None, 1], dtype=object)
    yield "allgatherv", "list", (send, recv, counts, displs), TypeError
    yield "allgatherv", "objects", (objects, np.zeros(2 * size, object), counts, displs), TypeError
    for number in (2**70, -(2**63) - 1):
        yield "sum", str(number), (number,), ValueError
    yield "allgather", "list", (send, recv), TypeError
    yield "share", "2**70", (2**70,), ValueError
    yield "shares", "text", ("4",), TypeError
    for code in (0, 256, -1, 2**70):
        yield "abort", str(code), (code,), ValueError
    for code in (1.0, True, None, "1"):
        yield "abort", repr(code), (code,), TypeError
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
    yield "exact_sum", "list", ([1.0],), TypeError
    yield "exact_sum", "scalar", (1.0,), TypeError
    yield "exact_sum", "byte order", (np.zeros(2, ">f8"),), TypeError
    yield "broadcast", "list", ([1.0],), TypeError
    yield "broadcast", "objects", (objects,), TypeError
    yield "broadcast", "bytearray", (bytearray(4),), TypeError
    yield "broadcast", "huge root", (np.zeros(2), 2**70), (InvalidRoot, *WRONG)
    yield "broadcast", "no size", (np.zeros(3, "V0"),), TypeError
    if rank != 0:
        yield "broadcast", "bytes", (np.frombuffer(b"12345678", np.uint8),), ValueError
