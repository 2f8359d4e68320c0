"""Uses of a communicator or a region in compiled code; some are refused, with an error.

``ways.py`` tries how long compiled code holds an object in each way.
"""

import collections
import warnings

import numba
from numba import njit, objmode, types

from cobre_comm.testing.cases.raised import raises

shared = None  # a communicator on every rank
Pair = collections.namedtuple("Pair", "comm number")


@njit
def same(comm):
    return comm


@njit
def meet_all(comms):
    ranks = 0
    for comm in comms:
        comm.barrier()
        ranks += comm.size
    return ranks


@njit
def meet_field(pair):
    pair.comm.barrier()
    return pair.comm.size * pair.number


@njit
def outside(comm):
    with objmode(rank="int64"):
        comm.barrier()
        rank = comm.rank
    return rank  # noqa: RET504  # what an objmode block gives


@njit
def if_given(comm, is_given):
    given = comm if is_given else None
    if given is not None:
        given.barrier()
    return given is None


@njit
def compare(left, right):
    return left is right, left == right, left != right


def every_form(comm):
    """Return the uses that give a wrong result, and the errors of the uses that are refused."""
    other, region = comm.split_local(), comm.create_shared_region(2)
    listed = numba.typed.List([comm])
    table = numba.typed.Dict.empty(types.int64, numba.typeof(comm))
    table[7] = comm
    wrong = {
        "return": same(comm) is not comm,
        "region": same(region) is not region,
        "typed.List": listed[0] is not comm or meet_all(listed) != comm.size,
        "typed.Dict": table[7] is not comm,
        "tuple": meet_all((comm, other)) != 2 * comm.size,
        "list": meet_all([comm, other]) != 2 * comm.size,
        "NamedTuple": meet_field(Pair(comm, 2)) != 2 * comm.size,
        "closure": closure(comm)() != comm.size,
        "default": default(comm)() != comm.size,
        "objmode": outside(comm) != comm.rank,
        "Optional": if_given(comm, True) or not if_given(comm, False),
        "is": compare(comm, comm) != (True, True, False),
        "is not": compare(comm, other) != (False, False, True),
        "is, of regions": compare(region, region) != (True, True, False),
    }
    other.close()
    return [name for name, is_wrong in wrong.items() if is_wrong], refusals(comm)


def closure(comm):
    @njit
    def meet():
        comm.barrier()
        return comm.size

    return meet


def default(own):
    @njit
    def meet(comm=own):
        comm.barrier()
        return comm.size

    return meet


@njit(cache=True)
def cached_global():
    return shared.size


REFUSALS = (
    "a communicator has no 'backend' in @njit code; it has allgather, allgatherv, allreduce",
    "a shared region cannot be a global or closure variable of @njit code; pass it",
    "a communicator cannot be pickled: create one in each process, and pass it to an @njit",
    "Cannot cache compiled function",
)


def refusals(comm):
    """Return numba's errors for uses that are refused."""
    global shared
    shared = comm
    region = comm.create_shared_region(2)

    @njit
    def other_name(comm):
        return comm.backend

    @njit
    def region_of_closure():
        return region.as_slice()[0]

    @njit(cache=True)
    def cached_closure():
        return comm.size

    wrong = (lambda: other_name(comm), region_of_closure, cached_closure)
    told = [str(raises((numba.NumbaError, TypeError), call)) for call in wrong]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cached_global()
    return told + [str(warning.message) for warning in caught]
