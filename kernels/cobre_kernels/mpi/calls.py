"""Calls of MPI's functions by address, which only this file makes, and arrays for their counts.

In some MPIs a handle (communicator, datatype, request) is an ``int`` (MPICH and its ABI), in others
a pointer (Open MPI). Each function can be called with handles of either width. The Mpi record says
which width this MPI has, and where its functions are. So the same machine code serves all MPIs.

Arguments are integers: addresses, handles, counts. A function that begins a collective returns a
status; other functions return MPI's error code, 0 for success.

Source: MPI 4.1, chapters 3, 6 and 19.3.5 on ABI-relevant types.
"""

import ctypes

import numpy as np

from cobre_kernels.collective.status import MPI_FAILED, OK
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.compiled import instruction, routine
from cobre_kernels.machine.elements import element_access
from cobre_kernels.machine.record import WORD_BYTES

# p: pointer, i: int, h: handle, n: a count of 64 bits (MPI_Count).
SIGNATURES = {
    "MPI_Iallgather": "pihpihhp",
    "MPI_Iallgatherv": "pihppphhp",
    "MPI_Iallgatherv_c": "pnhppphhp",
    "MPI_Ialltoallv": "ppphppphhp",
    "MPI_Ibcast": "pihihp",
    "MPI_Improbe": "iihppp",
    "MPI_Irecv": "pihiihp",
    "MPI_Isend": "pihiihp",
    "MPI_Mrecv": "pihpp",
    "MPI_Test": "ppp",
}
WIDTHS = (4, 8)

# Arrays of lengths and displacements in bytes, in the form that MPI takes: two for sending, two for
# receiving. They are in our own memory, which has a word for each node in each array. A call in
# place uses only the first two arrays.
SEND_BYTES, SEND_AT, RECV_BYTES, RECV_AT = range(4)
LARGEST_INT = 2**31 - 1

_store_int = element_access(np.int32)[1]


def _with_handles_of(name, width):
    """Return a function that calls an MPI function by its address; handles have ``width`` bytes."""
    sizes = {"p": 8, "n": 8, "i": 4, "h": width}
    widths = [sizes[letter] for letter in SIGNATURES[name]]
    kinds = [ctypes.c_int, *(ctypes.c_int if size == 4 else ctypes.c_int64 for size in widths)]

    def call_c(address, *arguments):
        return ctypes.CFUNCTYPE(*kinds)(address)(*map(int, arguments))

    return instruction(call_c, kinds)


def _function(name):
    """Return a function of MPI that takes the Mpi record first, and then integers."""
    narrow, wide = (_with_handles_of(name, width) for width in WIDTHS)
    number = list(SIGNATURES).index(name)

    @routine
    def call(mpi, *arguments):
        address = mpi.functions[number]
        if mpi.handle_bytes == 4:
            return np.int64(narrow(address, *arguments))
        return np.int64(wide(address, *arguments))

    return call


_iallgather, _test = _function("MPI_Iallgather"), _function("MPI_Test")
_iallgatherv, _iallgatherv_c = _function("MPI_Iallgatherv"), _function("MPI_Iallgatherv_c")
_ialltoallv, _ibcast = _function("MPI_Ialltoallv"), _function("MPI_Ibcast")
_improbe, _mrecv = _function("MPI_Improbe"), _function("MPI_Mrecv")
_irecv, _isend = _function("MPI_Irecv"), _function("MPI_Isend")


@routine
def _array_of(comm, number):
    """Return the address of one of the four arrays."""
    return comm.mpi.counts + WORD_BYTES * number * comm.nodes.nodes


@routine
def _as_ints(comm, number, words):
    """Write a table as an array of C ints; return its address."""
    nodes, address = comm.nodes.nodes, _array_of(comm, number)
    for node in range(nodes):
        _store_int(address, node, np.int32(words[node]))
    return address


@routine
def _as_counts(comm, number, words):
    """Write a table as an array of 64-bit counts; return its address."""
    address = _array_of(comm, number)
    for node in range(comm.nodes.nodes):
        poke(address + WORD_BYTES * node, words[node])
    return address


@routine
def status_of_mpi(comm, code):
    """Return the status of a call of MPI by its error code; if it has failed, keep the code."""
    if code == 0:
        return OK
    comm.mpi_error = code
    return MPI_FAILED


@routine
def begin_allgather(comm, send, recv, count):
    """Begin an allgather among leaders; a :func:`test` of ``mpi.request`` tells when it ends."""
    mpi, byte = comm.mpi, comm.mpi.byte
    code = _iallgather(mpi, send, count, byte, recv, count, byte, mpi.leaders, mpi.request)
    return status_of_mpi(comm, code)


@routine
def begin_allgatherv(comm, recv, needs_large):
    """Begin to gather in place on every leader: each leader has one block of ``recv``.

    If a block ends beyond the largest C int, 64-bit counts are needed. If the library has no
    function with 64-bit counts, no collective gathers blocks so far from the start of ``recv``
    (``reach_bytes``).
    """
    mpi, nodes, byte, leaders = comm.mpi, comm.nodes, comm.mpi.byte, comm.mpi.leaders
    own, request = mpi.in_place, mpi.request
    if needs_large:
        sizes = _as_counts(comm, SEND_BYTES, nodes.block_bytes)
        places = _as_counts(comm, SEND_AT, nodes.block_at)
        code = _iallgatherv_c(mpi, own, 0, byte, recv, sizes, places, byte, leaders, request)
    else:
        sizes = _as_ints(comm, SEND_BYTES, nodes.block_bytes)
        places = _as_ints(comm, SEND_AT, nodes.block_at)
        code = _iallgatherv(mpi, own, 0, byte, recv, sizes, places, byte, leaders, request)
    return status_of_mpi(comm, code)


@routine
def begin_receive(comm, buffer, count, leader):
    """Begin to receive from a leader; the request is ``mpi.request``."""
    mpi = comm.mpi
    code = _irecv(mpi, buffer, count, mpi.byte, leader, 0, mpi.leaders, mpi.request)
    return status_of_mpi(comm, code)


@routine
def begin_give(comm, buffer, count, leader):
    """Begin to send to a leader; the request is ``mpi.sending``."""
    mpi = comm.mpi
    code = _isend(mpi, buffer, count, mpi.byte, leader, 0, mpi.leaders, mpi.sending)
    return status_of_mpi(comm, code)


@routine
def begin_alltoallv(comm, send, recv):
    """Begin to give each leader its part of ``send``, and to get a part of ``recv`` from each."""
    mpi, nodes, byte = comm.mpi, comm.nodes, comm.mpi.byte
    send_bytes = _as_ints(comm, SEND_BYTES, nodes.send_bytes)
    send_at = _as_ints(comm, SEND_AT, nodes.send_at)
    recv_bytes = _as_ints(comm, RECV_BYTES, nodes.recv_bytes)
    recv_at = _as_ints(comm, RECV_AT, nodes.recv_at)
    code = _ialltoallv(
        mpi, send, send_bytes, send_at, byte, recv, recv_bytes, recv_at, byte, mpi.leaders,
        mpi.request,
    )  # fmt: skip
    return status_of_mpi(comm, code)


@routine
def begin_bcast(comm, buffer, count, root):
    """Begin a broadcast among leaders."""
    mpi = comm.mpi
    code = _ibcast(mpi, buffer, count, mpi.byte, root, mpi.leaders, mpi.request)
    return status_of_mpi(comm, code)


@routine
def test(mpi, request):
    """Test a request; afterwards :func:`flag_is_set` tells whether the request is complete."""
    poke(mpi.flag, 0)
    return _test(mpi, request, mpi.flag, mpi.status)


@routine
def flag_is_set(mpi):
    """Tell whether MPI has set the flag in the last call."""
    return peek(mpi.flag) != 0


@routine
def match_message(mpi, tag):
    """Match a message with this tag, from any rank; :func:`flag_is_set` tells if there is one.

    In MPICH, after a probe has seen a message that is still under way from another node, a receive
    from any rank never matches that message. So a matched probe is used here, which takes the
    message itself, in every MPI.
    """
    poke(mpi.flag, 0)
    return _improbe(mpi, mpi.any_source, tag, mpi.world, mpi.flag, mpi.matched, mpi.status)


@routine
def receive_matched(mpi, buffer, count):
    """Receive the message that :func:`match_message` has matched."""
    return _mrecv(mpi, buffer, count, mpi.byte, mpi.matched, mpi.status)


@routine
def begin_send(mpi, buffer, count, rank, tag, request):
    """Begin to send to a rank of the whole communicator."""
    return _isend(mpi, buffer, count, mpi.byte, rank, tag, mpi.world, request)
