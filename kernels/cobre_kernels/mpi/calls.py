"""MPI's functions by name: the only file that declares them.

A handle (communicator, datatype, request) is an ``int`` in some implementations (MPICH and its
ABI) and a pointer in others (Open MPI). Each function is declared for both widths, under a name of
ours that carries the width; the table of the communicator says which one holds, so a kernel is
compiled once for all implementations, and no address or handle is in cached code.

:func:`make_known` must have been called before a kernel is compiled or loaded. Arguments are
integers: addresses, handles, counts. Results are MPI's error codes, 0 for success.

Source: MPI 4.1, chapters 3, 6 and 19.3.5 on ABI-relevant types.
"""

import ctypes

import numpy as np
from llvmlite import binding
from numba import config, types

from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import table

# p: pointer, i: int, h: handle, n: a count of 64 bits (MPI_Count).
SIGNATURES = {
    "MPI_Allgather": "pihpihh",
    "MPI_Allgatherv": "pihppphh",
    "MPI_Allgatherv_c": "pnhppphh",
    "MPI_Alltoallv": "ppphppphh",
    "MPI_Bcast": "pihih",
    "MPI_Iallgather": "pihpihhp",
    "MPI_Iprobe": "iihpp",
    "MPI_Isend": "pihiihp",
    "MPI_Recv": "pihiihp",
    "MPI_Test": "ppp",
}
WIDTHS = (4, 8)
_TYPES = {"p": types.int64, "n": types.int64, "i": types.int32}
_C_TYPES = {"p": ctypes.c_int64, "n": ctypes.c_int64, "i": ctypes.c_int32}

_known: dict[str, int] = {}


def _symbol(name, width):
    return f"cobre_{name}_h{width}"


def make_known(addresses):
    """Give the linker the addresses of the functions in :data:`SIGNATURES`, by their names."""
    for name, address in addresses.items():
        _known[name] = address
        for width in WIDTHS:
            binding.add_symbol(_symbol(name, width), address)


def _external(name, width):
    handle = (types.int32, ctypes.c_int32) if width == 4 else (types.int64, ctypes.c_int64)
    signature = SIGNATURES[name]
    if not config.DISABLE_JIT:
        arguments = [handle[0] if c == "h" else _TYPES[c] for c in signature]
        return types.ExternalFunction(_symbol(name, width), types.int32(*arguments))
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int32, *[handle[1] if c == "h" else _C_TYPES[c] for c in signature]
    )
    return lambda *arguments: prototype(_known[name])(*map(int, arguments))


_allgather4, _allgather8 = (_external("MPI_Allgather", w) for w in WIDTHS)
_allgatherv4, _allgatherv8 = (_external("MPI_Allgatherv", w) for w in WIDTHS)
_allgatherv_c4, _allgatherv_c8 = (_external("MPI_Allgatherv_c", w) for w in WIDTHS)
_alltoallv4, _alltoallv8 = (_external("MPI_Alltoallv", w) for w in WIDTHS)
_bcast4, _bcast8 = (_external("MPI_Bcast", w) for w in WIDTHS)
_iallgather4, _iallgather8 = (_external("MPI_Iallgather", w) for w in WIDTHS)
_iprobe4, _iprobe8 = (_external("MPI_Iprobe", w) for w in WIDTHS)
_isend4, _isend8 = (_external("MPI_Isend", w) for w in WIDTHS)
_recv4, _recv8 = (_external("MPI_Recv", w) for w in WIDTHS)
_test4, _test8 = (_external("MPI_Test", w) for w in WIDTHS)


@routine
def _is_narrow(mpi):
    return peek(mpi + table.HANDLE_BYTES) == 4


@routine
def allgather(mpi, send, recv, count):
    """Give every leader ``count`` bytes of every one; ``send`` may be the table's IN_PLACE."""
    comm, byte = peek(mpi + table.LEADERS), peek(mpi + table.BYTE)
    n = np.int32(count)
    if _is_narrow(mpi):
        b, c = np.int32(byte), np.int32(comm)
        return np.int64(_allgather4(send, n, b, recv, n, b, c))
    return np.int64(_allgather8(send, n, byte, recv, n, byte, comm))


@routine
def allgatherv(mpi, send, send_bytes, recv, counts, displs):
    """The same with different counts; ``counts`` and ``displs`` are addresses of C ints."""
    comm, byte = peek(mpi + table.LEADERS), peek(mpi + table.BYTE)
    n = np.int32(send_bytes)
    if _is_narrow(mpi):
        b, c = np.int32(byte), np.int32(comm)
        return np.int64(_allgatherv4(send, n, b, recv, counts, displs, b, c))
    return np.int64(_allgatherv8(send, n, byte, recv, counts, displs, byte, comm))


@routine
def allgatherv_large(mpi, send, send_bytes, recv, counts, displs):
    """The same with counts and displacements of 64 bits; only if the table says HAS_LARGE."""
    comm, byte = peek(mpi + table.LEADERS), peek(mpi + table.BYTE)
    if _is_narrow(mpi):
        b, c = np.int32(byte), np.int32(comm)
        return np.int64(_allgatherv_c4(send, send_bytes, b, recv, counts, displs, b, c))
    return np.int64(_allgatherv_c8(send, send_bytes, byte, recv, counts, displs, byte, comm))


@routine
def alltoallv(mpi, send, send_counts, send_displs, recv, recv_counts, recv_displs):
    """Give leader k what ``send_counts[k]`` and ``send_displs[k]`` (C ints) describe."""
    comm, byte = peek(mpi + table.LEADERS), peek(mpi + table.BYTE)
    if _is_narrow(mpi):
        b, c = np.int32(byte), np.int32(comm)
        return np.int64(
            _alltoallv4(send, send_counts, send_displs, b, recv, recv_counts, recv_displs, b, c)
        )
    return np.int64(
        _alltoallv8(
            send, send_counts, send_displs, byte, recv, recv_counts, recv_displs, byte, comm
        )
    )


@routine
def bcast(mpi, buffer, count, root):
    """Broadcast among leaders."""
    comm, byte = peek(mpi + table.LEADERS), peek(mpi + table.BYTE)
    n, r = np.int32(count), np.int32(root)
    if _is_narrow(mpi):
        return np.int64(_bcast4(buffer, n, np.int32(byte), r, np.int32(comm)))
    return np.int64(_bcast8(buffer, n, byte, r, comm))


@routine
def begin_allgather(mpi, send, recv, count, request):
    """Begin an allgather among leaders; :func:`test` tells when it is complete."""
    comm, byte = peek(mpi + table.LEADERS), peek(mpi + table.BYTE)
    n = np.int32(count)
    if _is_narrow(mpi):
        b, c = np.int32(byte), np.int32(comm)
        return np.int64(_iallgather4(send, n, b, recv, n, b, c, request))
    return np.int64(_iallgather8(send, n, byte, recv, n, byte, comm, request))


@routine
def test(mpi, request):
    """Whether a request is complete goes to the table's FLAG (a C int)."""
    flag, status = mpi + table.FLAG, peek(mpi + table.STATUS)
    if _is_narrow(mpi):
        return np.int64(_test4(request, flag, status))
    return np.int64(_test8(request, flag, status))


@routine
def probe(mpi, tag):
    """Whether a message with that tag is here, from any rank, goes to the table's FLAG."""
    comm, source = peek(mpi + table.WORLD), np.int32(peek(mpi + table.ANY_SOURCE))
    flag, status, t = mpi + table.FLAG, peek(mpi + table.STATUS), np.int32(tag)
    if _is_narrow(mpi):
        return np.int64(_iprobe4(source, t, np.int32(comm), flag, status))
    return np.int64(_iprobe8(source, t, comm, flag, status))


@routine
def receive(mpi, buffer, count, tag):
    """Receive a message that :func:`probe` has seen."""
    comm, byte = peek(mpi + table.WORLD), peek(mpi + table.BYTE)
    source, status = np.int32(peek(mpi + table.ANY_SOURCE)), peek(mpi + table.STATUS)
    n, t = np.int32(count), np.int32(tag)
    if _is_narrow(mpi):
        return np.int64(_recv4(buffer, n, np.int32(byte), source, t, np.int32(comm), status))
    return np.int64(_recv8(buffer, n, byte, source, t, comm, status))


@routine
def begin_send(mpi, buffer, count, rank, tag, request):
    """Begin to send to a rank of the whole communicator."""
    comm, byte = peek(mpi + table.WORLD), peek(mpi + table.BYTE)
    n, r, t = np.int32(count), np.int32(rank), np.int32(tag)
    if _is_narrow(mpi):
        return np.int64(_isend4(buffer, n, np.int32(byte), r, t, np.int32(comm), request))
    return np.int64(_isend8(buffer, n, byte, r, t, comm, request))
