"""``share`` and ``shares`` in ``@njit`` code: equal shares, which wait for no other rank."""

from __future__ import annotations

from numba.extending import register_jitable

from cobre_comm.contract import derived
from cobre_comm.jit.arguments import integer_problem, integer_reader, refusal
from cobre_comm.jit.attributes import method
from cobre_comm.jit.fields import check_usable, record_of
from cobre_comm.jit.types import CommType

tables = register_jitable(derived.tables)
_fits, _share_of = register_jitable(derived.fits), register_jitable(derived.share_of)


@method(CommType, "share")
def _share(comm, n):
    problem = integer_problem("share", "n", n)
    if problem is not None:
        refuse = refusal(None, problem)
        return lambda comm, n: refuse(comm)
    to_int, unfit = integer_reader(n), f"share: {derived.SHARED_HINT}"

    def share(comm, n):
        check_usable(record_of(comm))
        items = to_int(n)
        if not _fits(items, 1):
            raise ValueError(unfit)
        return _share_of(items, comm.rank, comm.size)

    return share


@method(CommType, "shares")
def _shares(comm, n, width=1):
    problem = integer_problem("shares", "n", n) or integer_problem("shares", "width", width)
    if problem is not None:
        refuse = refusal(None, problem)
        return lambda comm, n, width=1: refuse(comm)
    to_items, to_elements = integer_reader(n), integer_reader(width)
    unfit = f"shares: {derived.SHARED_HINT}"

    def shares(comm, n, width=1):
        check_usable(record_of(comm))
        items, elements = to_items(n), to_elements(width)
        if not _fits(items, elements):
            raise ValueError(unfit)
        return tables(items, elements, comm.size)

    return shares
