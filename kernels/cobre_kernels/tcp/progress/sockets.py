"""System calls on the sockets of links; their results become results of progress steps."""

from cobre_kernels.machine import libc
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move

# Results of a progress step on one link. MORE: more bytes have to move. MOVED: bytes have moved;
# this is a bit, which is added to NO_MORE or MORE.
NO_MORE, MORE, MOVED = 0, 1, 2
ENDED, GARBLED = -1, -2  # the link cannot be used any more

NS_PER_MS = 1_000_000


@routine
def without_bytes(result):
    """Return MORE or ENDED for a system call that has moved nothing."""
    return MORE if result == -libc.EAGAIN or result == -libc.EINTR else ENDED


@routine
def _gather(comm, first, first_bytes, second, second_bytes):
    """Describe two pieces of memory, each maybe empty, in the msghdr; return its address."""
    msghdr = comm.links.msghdr
    count = 0
    for begin, size_bytes in ((first, first_bytes), (second, second_bytes)):
        if size_bytes > 0:
            vector = msghdr.gathered[count]
            vector.begin, vector.count = begin, size_bytes
            count += 1
    msghdr.count = count
    return msghdr.address


@routine
def send_two(comm, fd, first, first_bytes, second, second_bytes):
    """Send from two addresses, one after the other; return the number of bytes, or -errno."""
    return libc.send_message(fd, _gather(comm, first, first_bytes, second, second_bytes))


@routine
def receive_two(comm, fd, first, first_bytes, second, second_bytes):
    """Receive to two addresses, one after the other; return the number of bytes, or -errno."""
    return libc.receive_message(fd, _gather(comm, first, first_bytes, second, second_bytes))


@routine
def receive_data(peer, begin, count):
    """Receive bulk data, beginning with kept bytes; return the number of bytes, or -errno.

    Bytes were kept if they arrived behind a message that was shorter than expected.
    """
    if peer.surplus_bytes == 0:
        return libc.receive(peer.data_fd, begin, count)
    count = min(count, peer.surplus_bytes)
    move(begin, peer.surplus, count)
    peer.surplus += count
    peer.surplus_bytes -= count
    return count


@routine
def becomes_ready(comm, fd, events, patience_ms):
    """Wait for one descriptor; tell whether it is ready."""
    entry = comm.links.lone_poll
    entry.entry = fd | events << 32
    return libc.poll(entry.address, 1, patience_ms) > 0


@routine
def send_all(comm, fd, begin, count, patience_ms):
    """Send all bytes, or give up; if a frame was sent in part, the link cannot be used any more."""
    while count > 0:
        sent = send_two(comm, fd, begin, count, 0, 0)
        if sent < 0:
            is_full = sent == -libc.EAGAIN and becomes_ready(comm, fd, libc.POLLOUT, patience_ms)
            if not is_full and sent != -libc.EINTR:
                return
            sent = 0
        begin += sent
        count -= sent


@routine
def receive_all(comm, fd, begin, count, patience_ms):
    """Receive all bytes; tell whether all of them arrived."""
    while count > 0:
        got = libc.receive(fd, begin, count)
        if got <= 0:
            is_empty = got == -libc.EAGAIN and becomes_ready(comm, fd, libc.POLLIN, patience_ms)
            if not is_empty and got != -libc.EINTR:
                return False
            got = 0
        begin += got
        count -= got
    return True
