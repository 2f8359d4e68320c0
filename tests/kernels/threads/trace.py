"""Run the collectives as plain Python on threads, and print their operations on shared words.

    NUMBA_DISABLE_JIT=1 python -m tests.kernels.threads.trace [planted]

Prints JSON: for each scenario the races, the operations on each word, and each word's writers. With
an argument, each scenario has a planted mistake.
"""

import ctypes
import functools
import json
import sys
import time

import numpy as np

from tests.kernels.threads import recorder as recording  # first, because it replaces the atomics
from tests.kernels.threads.recorder import recorder
from tests.kernels.threads.world import REGION_BYTES, World

from cobre_kernels.collective import calls, dtypes, entry, status  # isort: skip
from cobre_kernels.collective import work as work_kernels  # isort: skip
from cobre_kernels.collective.reduction import fold  # isort: skip
from cobre_kernels.collective.reading import VECTOR  # isort: skip
from cobre_kernels.machine import copy, libc  # isort: skip
from cobre_kernels.shm import allreduce as reducing  # isort: skip
from cobre_kernels.shm import failing, reading, slot, step, wait, ways  # isort: skip
from tests.kernels.threads.node import Node, NodeThatIsLeft  # isort: skip
from tests.kernels.threads.works import Works, work_of  # isort: skip

SIZE = 4  # more than FOLD_ALL_RANKS
LATE_S = 0.02
WRITE_S, LIMIT_S = 0.1, 0.15  # how long a slow write takes, and when its reader gives up
# numbers of float64: inline, the most inline, one slot, several slots
LENGTHS = (3, 96 // 8, 300, 2500)
NODE_LENGTHS = (3, 300, 2500, 7000)  # gathered, then in stripes; one round, then several rounds

libc.lock_is_held = lambda fd, byte, scratch: True  # threads cannot see the locks of other threads
copy.STREAM_BYTES = 4096  # so that outputs go past the caches here too
slot.TIMED_FILL_BYTES = 2048
ways.LEAST_SHIFT = 14
reading.PIECE_BYTES = 4096
reducing.HALVES_BYTES = 4096


def vectors(here, there, count):
    """Return the pairs of addresses, and the lengths, that vectors of two processes describe."""
    at = [range(begin, begin + count * VECTOR.size_bytes, VECTOR.size_bytes)
          for begin in (here, there)]  # fmt: skip
    return [
        (recording.look(a), recording.look(b), recording.look(a + 8))
        for a, b in zip(*at, strict=True)
    ]


def read_process(pid, here, there, count):
    for target, source, length in vectors(here, there, count):
        recording.copy_bytes(target, source, length)
    return sum(length for *_, length in vectors(here, there, count))


def write_process(pid, here, there, count):
    """Note the writes of process_vm_writev, before which the thread may sleep.

    The system copies the mark after the bytes, so here the mark is stored as by a release.
    """
    time.sleep(getattr(recorder.ranks, "write_s", 0.0))
    (source, target, length), (number, mark, word) = vectors(here, there, count)
    recording.copy_bytes(target, source, length)
    recording.REPLACED["store_release"](mark, recording.look(number))
    return length + word


libc.read_process, libc.write_process = read_process, write_process


checks_data = True  # false if a mistake is planted
world = None  # of the scenario under way


def compare(found, expected):
    if checks_data:
        np.testing.assert_array_equal(found, expected)


def values(rank, length):
    return np.arange(length, dtype=np.float64) * (rank + 2) + rank


def synchronise(comm, length=0):
    return entry.barrier_entry.call(comm, *calls.Barrier(calls.BARRIER, length))


def barriers(comm):
    for late_rank in range(4):
        if comm.rank == late_rank:
            time.sleep(LATE_S)  # meanwhile the others sleep on this rank's word
        assert synchronise(comm) == status.OK


def broadcast(comm, length, root, buffer=None):
    rank = comm.rank
    buffer = np.full(length, np.nan) if buffer is None else buffer
    if rank == root:
        buffer[:] = values(root, length)
    call = calls.Broadcast(buffer.ctypes.data, buffer.nbytes, dtypes.FLOAT64, root)
    assert entry.broadcast_entry.call(comm, *call) == status.OK
    compare(buffer, values(root, length))


def allreduce(comm, length, send=None, recv=None):
    send = values(comm.rank, length) if send is None else send
    recv = np.full(length, np.nan) if recv is None else recv
    addresses = (send.ctypes.data, length, recv.ctypes.data, length)
    call = calls.Allreduce(*addresses, 8, dtypes.FLOAT64, fold.SUM)
    assert entry.allreduce_entry.call(comm, *call) == status.OK
    compare(recv, sum(values(r, length) for r in range(comm.size)))


def allgatherv(comm, length, recv=None, send=None, *, in_place=False):
    counts = np.array([length + r if length > 12 else length for r in range(comm.size)])
    displs = np.cumsum(counts) - counts
    own = values(comm.rank, counts[comm.rank])
    if send is None:
        send = own
    else:
        send = send[: len(own)]
        send[:] = own
    recv = np.full(counts.sum(), np.nan) if recv is None else recv[: counts.sum()]
    if in_place:
        own = recv[displs[comm.rank] :][: len(send)]
        own[:] = send
        send = own
    call = calls.Allgatherv(
        send.ctypes.data, len(send), recv.ctypes.data, len(recv), 8, dtypes.FLOAT64,
        counts.ctypes.data, displs.ctypes.data, comm.size, comm.size,
    )  # fmt: skip
    assert entry.allgatherv_entry.call(comm, *call) == status.OK
    compare(recv, np.concatenate([values(r, counts[r]) for r in range(comm.size)]))


def gatherv(comm, length, root, extra=0, recv=None):
    counts = np.array([length + r if length > 12 else length for r in range(comm.size)])
    displs = np.cumsum(counts) - counts
    send = values(comm.rank, counts[comm.rank] + extra)
    if recv is None or comm.rank != root:
        recv = np.full(counts.sum() if comm.rank == root else 0, np.nan)
    recv = recv[: counts.sum()]
    call = calls.Gatherv(
        send.ctypes.data, len(send), recv.ctypes.data, len(recv), 8, dtypes.FLOAT64,
        counts.ctypes.data, displs.ctypes.data, comm.size, comm.size, root,
    )  # fmt: skip
    outcome = entry.gatherv_entry.call(comm, *call)
    if comm.rank == root and outcome == status.OK:
        compare(recv, np.concatenate([values(r, counts[r]) for r in range(comm.size)]))
    return outcome


def gathervs(comm):
    for number, length in enumerate((*LENGTHS, *LENGTHS)):
        assert gatherv(comm, length, number % comm.size) == status.OK
    assert gatherv(comm, 20, 1, extra=comm.rank == 2) == status.DISAGREE


def broadcasts(comm):
    for number, length in enumerate((*LENGTHS, 1000, *LENGTHS)):
        broadcast(comm, length, number % comm.size)


def allreduces(comm):
    for length in (*LENGTHS, *LENGTHS):
        allreduce(comm, length)


def allgathervs(comm):
    for length in (*LENGTHS, *LENGTHS):
        allgatherv(comm, length)


def whole(words, what):
    """Note a plain access to each of some words."""
    with recorder.lock:
        recorder.data(what, "plain", words.ctypes.data, words.nbytes)


def large(comm):
    """Large calls of private memory, in each way; after a call, each rank touches its memory."""
    length = 2100  # the share of the last of four ranks is empty
    counts = comm.size * (length + comm.size)
    mine = world.private(comm.rank)
    buffer, send = mine[:counts], mine[counts:]
    for way in (ways.READ, ways.BOTH, ways.STREAMED, ways.SLOTS):
        comm.node.forced_way = way
        for root in range(comm.size):
            whole(buffer, "store")
            broadcast(comm, length, root, buffer[:length])
            whole(buffer, "load")
        for in_place in (False, True):
            for words in (buffer, send):
                whole(words, "store")
            allgatherv(comm, length, buffer, send, in_place=in_place)
            whole(buffer, "load")
    comm.node.forced_way = ways.FASTEST
    for number in range(2):
        broadcast(comm, length, number, buffer[:length])
        whole(buffer, "store")


def left_while_written(comm):
    """Readers give up, rank 1 while the root writes to its buffer; then all use their buffers.

    Before they give up, all readers have entered the last step, so the root's call succeeds.
    """
    buffer = world.private(comm.rank)[:2100]
    comm.node.forced_way = ways.BOTH
    recorder.ranks.write_s = WRITE_S
    call = calls.Broadcast(buffer.ctypes.data, buffer.nbytes, dtypes.FLOAT64, 0)
    outcome = entry.broadcast_entry.call(comm, *call)
    assert outcome == (status.OK if comm.rank == 0 else status.TIMED_OUT)
    whole(buffer, "store")


def region(comm, number):
    """Return the memory of a region that all ranks see."""
    begin = recording.look(comm.regions.rows[number - 1].begin)
    words = (ctypes.c_double * (REGION_BYTES // 8)).from_address(begin)
    return np.frombuffer(words, dtype=np.float64)


def regions(comm):
    """Outputs in a region: one output of all ranks, or the output of one rank only.

    Outputs that only some ranks share are left out. Such ranks write the same bytes, which is
    harmless, but which this detector reports as a race.
    """
    output, sends = region(comm, 1), region(comm, 2)
    for length in (*LENGTHS, *LENGTHS):
        part = sends[comm.rank * length :][:length]
        part[:] = values(comm.rank, length)
        for send in (None, part, part if comm.rank % 2 else None):
            allreduce(comm, length, send, output[:length])
            assert synchronise(comm) == status.OK
        allreduce(comm, length, None, output[:length] if comm.rank == 1 else None)
        assert synchronise(comm) == status.OK
        for in_place in (False, True):
            allgatherv(comm, length, output, in_place=in_place)
            assert synchronise(comm) == status.OK


def outputs(comm, places=(range(SIZE), (1,))):
    """Outputs that several ranks share; each rank touches its part after each collective."""
    shared = region(comm, 1)
    for number, length in enumerate((SIZE, 300, 1000)):
        for ranks in places:
            output = shared if comm.rank in ranks else None
            root = (number + 1) % SIZE
            allreduce(comm, length, None, None if output is None else output[:length])
            touch(comm, output)
            broadcast(comm, length, root, None if output is None else output[:length])
            touch(comm, output)
            allgatherv(comm, length, output)
            touch(comm, output)
            assert gatherv(comm, length, root, recv=output) == status.OK
            touch(comm, shared if root in ranks else None)


def touch(comm, output):
    """Note that a rank reads its word of an output, and writes to the word; then all ranks meet."""
    if output is not None:
        for what in ("load", "store"):
            note(output[comm.rank :], what)
    assert synchronise(comm) == status.OK


def node_outputs(comm):
    """Outputs of ranks over MPI: if several ranks share an output, only one of them writes it."""
    outputs(comm, (range(SIZE), (0, 2, 3), (1,)))


def mixed(comm):
    allreduces(comm)
    broadcasts(comm)
    barriers(comm)
    allgathervs(comm)


def rounds(comm):
    """All collectives in turn, often enough that each uses both halves of the staging buffer."""
    for number, length in enumerate((*NODE_LENGTHS, *NODE_LENGTHS)):
        allreduce(comm, length)
        broadcast(comm, length, number % comm.size)
        assert synchronise(comm) == status.OK
        allgatherv(comm, length)


def disagreement(comm):
    assert synchronise(comm) == status.OK
    assert synchronise(comm, comm.rank % 2) == status.DISAGREE
    assert synchronise(comm) == status.IS_BROKEN


def disagreement_left(comm):
    assert synchronise(comm, comm.rank % 2) == status.MPI_FAILED


def late(comm):
    if comm.rank == 0:
        time.sleep(0.4)
        step.announce_closed_kernel.call(comm)
    else:
        assert synchronise(comm) in (status.TIMED_OUT, status.LOST_PEER)


def left(comm):
    if comm.rank == 0:
        time.sleep(LATE_S)
        step.announce_closed_kernel.call(comm)
    else:
        assert synchronise(comm) == status.LOST_PEER


def claims(comm):
    """Each rank writes the results of its items; in the next round all ranks read all results."""
    count = 40
    work, results = work_of(comm, count, region(comm, 1), synchronise), region(comm, 2)
    for number in range(5):
        for item in work:
            note(results[item:], "store")
        work.reset(order=np.arange(count)[::-1] if number % 2 else None)
        for item in range(count):
            note(results[item:], "load")
        assert synchronise(comm) == status.OK
    assert work._own_costs(0).size == count


def note(words, what):
    """Note a plain access to the first of some words."""
    with recorder.lock:
        recorder.data(what, "plain", words.ctypes.data, words.itemsize)


def mistakes():
    """Return the planted mistakes by name: the body, the world, and the functions to replace."""
    stands_for = recording.REPLACED
    files = (slot, sys.modules["cobre_kernels.shm.allgatherv"])
    halves = [module for module in sys.modules.values() if hasattr(module, "next_half")]
    bodies = [module for module in sys.modules.values() if hasattr(module, "end_together")]
    slot_of, half_of = slot.slot_of, reducing._half_of
    is_short = functools.partial(World, timeout_s=LIMIT_S)

    def one_parity(comm, rank, generation):
        return slot_of(comm, rank, 0)

    def one_place(comm, rank, generation):
        return half_of(comm, rank, 0)

    def one_half(nodes):
        nodes.rounds += 1
        return nodes.halves

    def load_and_store(address, value):
        before = stands_for["load_relaxed"](address)
        stands_for["store_relaxed"](address, before + value)
        return before

    def arrival(store):
        return [(step, "store_seq_cst", stands_for[store])]

    def looks(load):
        return [(file, "load_acquire", stands_for[load]) for file in (step, wait)]

    return {
        "relaxed store of arrived": (mixed, World, arrival("store_relaxed")),
        "releasing store of arrived": (barriers, World, arrival("store_release")),
        "plain store of arrived": (barriers, World, arrival("poke")),
        "relaxed load of arrived": (mixed, World, looks("load_relaxed")),
        "plain load of arrived": (mixed, World, looks("peek")),
        "acquiring load of sleepers": (
            barriers, World, [(step, "load_seq_cst", stands_for["load_acquire"])],
        ),
        "relaxed store of condition": (
            left, World, [(step, "store_seq_cst", stands_for["store_relaxed"])],
        ),
        "no fence after streamed stores": (mixed, World, [(slot, "store_fence", lambda: None)]),
        "one slot for both parities": (mixed, World, [(f, "slot_of", one_parity) for f in files]),
        "one half of the staging buffer": (
            rounds, Node, [(f, "next_half", one_half) for f in halves],
        ),
        "no last step where outputs meet": (
            node_outputs, Node,
            [(b, "end_together", lambda comm, outcome, least: outcome) for b in bodies],
        ),
        "no last step of a gatherv into a region": (
            outputs, World,
            [(
                sys.modules["cobre_kernels.shm.gatherv"], "synchronise",
                lambda comm, shown: status.OK,
            )],
        ),
        "a claim by a load and a store": (
            claims, Works, [(work_kernels, "fetch_add", load_and_store)],
        ),
        "one place for the halves of both parities": (
            allreduces, Two, [(reducing, "_half_of", one_place)],
        ),
        "no wait for writers": (
            left_while_written, is_short, [(failing, "await_writers", lambda comm: None)],
        ),
        "acquiring load of writing": (
            left_while_written, is_short, [(reading, "load_seq_cst", stands_for["load_acquire"])],
        ),
        "no last step after reads": (
            large, World,
            [
                (sys.modules[f"cobre_kernels.shm.{name}"], "end_reading", lambda comm, could: 0)
                for name in ("broadcast", "allgatherv")
            ],
        ),
        "no barrier in a reset": (
            claims, Works,
            [(sys.modules[__name__], "synchronise", lambda comm, length=0: status.OK)],
        ),
    }  # fmt: skip


class Two(World):
    """Two ranks, whatever number is asked for."""

    def __init__(self, size, **limits):
        super().__init__(2, **limits)


def report(body, kind=World, **limits):
    """Run a scenario; return its races, operations and writers."""
    global world
    world = kind(SIZE, **limits)
    world.run(body)
    return {
        "races": recorder.races.found[:20],
        "operations": sorted(recorder.operations),
        "writers": [[word, at, sorted(who)] for (word, at), who in recorder.writers.items()],
    }


def planted(body, kind, changes):
    """Run a scenario with a planted mistake; return its report."""
    global checks_data
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    checks_data = False
    try:
        for module, name, what in changes:
            setattr(module, name, what)
        return report(body, kind)
    finally:
        checks_data = True
        for module, name, what in before:
            setattr(module, name, what)


def scenarios():
    """Run the scenarios that should be without a race; return their reports."""
    bodies = (
        barriers,
        broadcasts,
        allreduces,
        allgathervs,
        gathervs,
        mixed,
        regions,
        outputs,
        large,
        disagreement,
        left,
    )
    results = {body.__name__: report(body) for body in bodies}
    results["late"] = report(late, timeout_s=LIMIT_S)
    results["left while written"] = report(left_while_written, timeout_s=LIMIT_S)
    for body in (allreduces, allgathervs, large):
        results[f"{body.__name__} of two"] = report(body, Two)
    results["claims"] = report(claims, Works)
    results["rounds"] = report(rounds, Node)
    results["node outputs"] = report(node_outputs, Node)
    results["node gathervs"] = report(gathervs, Node)
    results["node disagreement"] = report(disagreement, Node)
    results["node disagreement left"] = report(disagreement_left, NodeThatIsLeft)
    return results


def all_planted():
    """Run every scenario with a planted mistake; return their reports."""
    Node(SIZE)  # loads every body; a mistake may replace functions in a body
    return {name: planted(*mistake) for name, mistake in mistakes().items()}


if __name__ == "__main__":
    json.dump(all_planted() if sys.argv[1:] else scenarios(), sys.stdout)
