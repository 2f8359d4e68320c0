"""Wrong arguments: each call raises the right exception and leaves the communicator usable."""

import warnings
from functools import partial

import numpy as np
from numba import njit

from cobre_comm import InvalidBufferSize, InvalidCommunicator, InvalidRoot, ReduceOp
from cobre_comm.testing.cases.calls import COLLECTIVES, arguments, calls
from cobre_comm.testing.cases.case import QUICK, WHOLE, Case
from cobre_comm.testing.cases.collectives.barrier import three_barriers
from cobre_comm.testing.cases.errors import wrong_calls
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.raised import met, raises


def _check(comm, caller, operation, name, given, error):
    """Fail unless a wrong call raises the right exception, whose message names the operation."""
    label = f"{operation}, {name}, {caller}"
    with warnings.catch_warnings(action="ignore"):
        caught = met(getattr(calls(caller, comm.rank), operation), comm, *given)
    assert isinstance(caught, error), f"{label} raised {caught!r}"[:300]
    says_where = caller == "njit" or str(caught).startswith((operation, "root "))
    assert says_where, f"{label}: the message does not say where: {caught}"


def wrong_arguments(comm, caller, operation):
    """Every wrong call of an operation leaves the communicator usable."""
    for name, given, error in wrong_calls.BY_OPERATION[operation](comm.rank, comm.size):
        _check(comm, caller, operation, name, given, error)
        three_barriers(comm, caller)
    four_in_a_row(comm, caller)


def wrong_python_arguments(comm):
    for operation, name, given, error in wrong_calls.python(comm.rank, comm.size):
        _check(comm, "python", operation, name, given, error)
    four_in_a_row(comm, "python")


def fields_of_argument_errors(comm, caller):
    made = calls(caller, comm.rank)
    size = comm.size
    tables = np.full(size, 2), 2 * np.arange(size)
    wrong = {
        "root": lambda: made.broadcast(comm, np.zeros(2), size + 3),
        "lengths": lambda: made.allreduce(comm, np.zeros(4), np.zeros(3), ReduceOp.SUM),
        "send": lambda: made.allgatherv(comm, np.zeros(5), np.zeros(2 * size), *tables),
        "tables": lambda: made.allgatherv(
            comm, np.zeros(2), np.zeros(2 * size), np.append(tables[0], 1), tables[1]
        ),
        "negative": lambda: made.allgatherv(
            comm, np.zeros(2), np.zeros(2 * size), tables[0], tables[1] - 1
        ),
        "outside": lambda: made.allgatherv(
            comm, np.zeros(2), np.zeros(2 * size), tables[0], _last(tables[1], 2 * size - 1)
        ),
        "far outside": lambda: made.allgatherv(
            comm, np.zeros(2), np.zeros(2 * size), tables[0], _last(tables[1], 2**63 - 1)
        ),
        "empty": lambda: made.allreduce(comm, np.zeros(0), np.zeros(0), ReduceOp.SUM),
    }
    caught = {name: raises((InvalidRoot, InvalidBufferSize), call) for name, call in wrong.items()}
    assert (caught["root"].root, caught["root"].size) == (size + 3, size)
    lengths = caught["lengths"]
    assert (lengths.operation, {lengths.expected, lengths.actual}) == ("allreduce", {3, 4})
    send = caught["send"]
    assert (send.operation, send.expected, send.actual) == ("allgatherv", 2, 5)
    assert (caught["tables"].expected, caught["tables"].actual) == (size, size + 1)
    assert (caught["negative"].expected, caught["negative"].actual) == (0, -1)
    assert (caught["empty"].expected, caught["empty"].actual) == (1, 0)
    for name, end in (("outside", 2 * size + 1), ("far outside", 2**63 + 1)):
        assert (caught[name].expected, caught[name].actual) == (end, 2 * size)
        block = f"the block of rank {size - 1}, [{end - 2}, {end})"
        assert caught[name].message == f"recv has no room for {block}", str(caught[name])


def _last(table, value):
    return np.append(table[:-1], value)


def empty_views(comm, caller):
    """An array without elements counts as contiguous and aligned, for any strides."""
    made, size = calls(caller, comm.rank), comm.size
    none = np.zeros(size, np.int64)
    views = np.ones((4, 4))[:, ::2][:0], np.ones((4, 4)).T[:, :0], np.ones(8)[::2][:0]
    for view in views:
        made.allgatherv(comm, view, np.zeros(0), none, none)
        made.gatherv(comm, view, view, none, none)
        made.allgather(comm, view, view)
        made.broadcast(comm, view)
        assert made.exact_sum(comm, view) == 0.0
    assert made.exact_sum(comm, np.zeros(9, np.uint8)[1:].view("f8")[:0]) == 0.0


def tables_of_every_kind(comm, caller):
    """Counts may be of any integer type; the fields of a dtype may overlap, and in any order."""
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
    """Every method of a closed communicator says that it is closed."""
    comm.barrier()
    comm.close()
    comm.close()
    others = ["exact_sum", "allgather", "sum", "min", "max", "share", "shares"]
    for name in [*COLLECTIVES, *others]:
        call = getattr(calls(caller, comm.rank), name)
        told = raises(InvalidCommunicator, call, comm, *arguments(comm, name, root=comm.rank))
        assert "closed" in str(told), (name, told)
    for call in (comm.stats, lambda: comm.abort(3)):
        assert "closed" in str(raises(InvalidCommunicator, call))
    assert 0 <= comm.rank < comm.size


case = partial(Case, where="arguments", column="errors", check=QUICK)
WRONG = {"operation": list(wrong_calls.BY_OPERATION)}
CASES = [
    case("wrong_arguments", wrong_arguments, WRONG, callers=("python",)),
    case(
        "wrong_arguments_in_njit", wrong_arguments, WRONG, callers=("njit",),
        check=WHOLE, timeout_s=120,
    ),
    case("arguments_that_only_python_has", wrong_python_arguments, callers=()),
    case("fields", fields_of_argument_errors),
    case("empty_views", empty_views, check=WHOLE),
    case("tables_of_every_kind", tables_of_every_kind, check=WHOLE),
    case(
        "try_except_in_compiled_code", try_except_in_compiled_code, callers=(), needs=("njit",),
        fresh=True, check=WHOLE,
    ),
    case("closed", closed, fresh=True),
]  # fmt: skip
