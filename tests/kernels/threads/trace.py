"""Run the collectives as plain Python on threads, and print what they did to shared words.

    NUMBA_DISABLE_JIT=1 python -m tests.kernels.shared_words_trace

Prints JSON: for each scenario the races, the operations on each word, and each word's writers.
"""

import json
import sys
import time

import numpy as np

from tests.kernels import shared_words_recorder  # first: it replaces atomics.py's functions
from tests.kernels.shared_words_recorder import World, compare, recorder

from cobre_kernels import access, copy, dtypes, fold, layout, libc, status, wait  # isort: skip
from cobre_kernels.kind import BARRIER  # isort: skip
from cobre_kernels.mpi import table  # isort: skip
from cobre_kernels.shm import slot, step  # isort: skip
from cobre_kernels.shm.allgatherv import allgatherv_kernel  # isort: skip
from cobre_kernels.shm.allreduce import allreduce_kernel  # isort: skip
from cobre_kernels.shm.barrier import synchronise_kernel  # isort: skip
from cobre_kernels.shm.broadcast import broadcast_kernel  # isort: skip
from tests.kernels.shared_words_node import Node, node_disagreement, rounds  # isort: skip

SIZE = 4  # more than FOLD_ALL_RANKS
LATE_S = 0.02
LENGTHS = (3, 96 // 8, 300, 2500)  # of float64: inline, inline at its most, a slot, several slots

libc.lock_is_held = lambda fd, byte, scratch: True  # threads cannot see each other's locks
copy.STREAM_BYTES = 4096  # so that outputs go past the caches here too
slot.TIMED_FILL_BYTES = 2048


def _values(rank, length):
    return np.arange(length, dtype=np.float64) * (rank + 2) + rank


def barriers(rank, state):
    for turn in range(4):
        if rank == turn:
            time.sleep(LATE_S)  # the others sleep on this rank's word
        assert synchronise_kernel.call(state, BARRIER, 0) == status.OK


def broadcasts(rank, state):
    for turn, length in enumerate((*LENGTHS, *LENGTHS)):
        root = turn % SIZE
        buffer = _values(root, length) if rank == root else np.full(length, np.nan)
        arguments = (buffer.ctypes.data, buffer.nbytes, dtypes.FLOAT64, root)
        assert broadcast_kernel.call(state, *arguments) == status.OK
        compare(buffer, _values(root, length))


def allreduces(rank, state):
    for length in (*LENGTHS, *LENGTHS):
        send, recv = _values(rank, length), np.full(length, np.nan)
        outcome = allreduce_kernel.call(
            state, send.ctypes.data, length, recv.ctypes.data, length, 8, dtypes.FLOAT64, fold.SUM
        )
        assert outcome == status.OK
        compare(recv, sum(_values(r, length) for r in range(SIZE)))


def allgathervs(rank, state):
    for length in (*LENGTHS, *LENGTHS):
        counts = np.array([length + r if length > 12 else length for r in range(SIZE)])
        displs = np.cumsum(counts) - counts
        send, recv = _values(rank, counts[rank]), np.full(counts.sum(), np.nan)
        outcome = allgatherv_kernel.call(
            state, send.ctypes.data, len(send), recv.ctypes.data, len(recv), 8, dtypes.FLOAT64,
            counts.ctypes.data, displs.ctypes.data, SIZE, SIZE,
        )  # fmt: skip
        assert outcome == status.OK
        expected = np.concatenate([_values(r, counts[r]) for r in range(SIZE)])
        compare(recv, expected)


def mixed(rank, state):
    allreduces(rank, state)
    broadcasts(rank, state)
    barriers(rank, state)
    allgathervs(rank, state)


def disagreement(rank, state):
    assert synchronise_kernel.call(state, BARRIER, 0) == status.OK
    assert synchronise_kernel.call(state, BARRIER, rank % 2) == status.DISAGREE


def late(rank, state):
    if rank == 0:
        time.sleep(0.4)
        access.announce_kernel.call(state, layout.CLOSED)
    else:
        assert synchronise_kernel.call(state, BARRIER, 0) in (status.TIMED_OUT, status.LOST_PEER)


def left(rank, state):
    if rank == 0:
        time.sleep(LATE_S)
        access.announce_kernel.call(state, layout.CLOSED)
    else:
        assert synchronise_kernel.call(state, BARRIER, 0) == status.LOST_PEER


def mistakes():
    """Return what is planted, by name: (file, name in it, what takes its place)."""
    relaxed = shared_words_recorder.REPLACED["load_relaxed"]
    plain = shared_words_recorder.REPLACED["peek"]
    careless = shared_words_recorder.REPLACED["store_relaxed"]
    users = (slot, *(sys.modules[f"cobre_kernels.shm.{n}"] for n in ("broadcast", "allgatherv")))
    slot_of, half_of = slot.slot_of, table.half_of

    def one_parity(state, rank, generation):
        return slot_of(state, rank, 0)

    def one_half(state, mpi):
        return half_of(state, mpi) - (
            shared_words_recorder.look(mpi + table.ROUNDS) & 1
        ) * shared_words_recorder.look(mpi + table.HALF_BYTES)

    return {
        "relaxed store of ARRIVED": (mixed, World, [(step, "store_seq_cst", careless)]),
        "relaxed load of ARRIVED": (
            mixed,
            World,
            [(f, "load_acquire", relaxed) for f in (step, wait)],
        ),
        "plain load of ARRIVED": (mixed, World, [(f, "load_acquire", plain) for f in (step, wait)]),
        "no fence after streamed stores": (mixed, World, [(slot, "settle", lambda: None)]),
        "one slot for both parities": (mixed, World, [(f, "slot_of", one_parity) for f in users]),
        "one half of the stage": (rounds, Node, [(table, "half_of", one_half)]),
    }


def report(body, kind=World, **world):
    """Run a scenario; return what it did."""
    kind(SIZE, **world).run(body)
    return {
        "races": recorder.races.found[:20],
        "operations": sorted(recorder.operations),
        "writers": [[word, at, sorted(who)] for (word, at), who in recorder.writers.items()],
    }


def planted(body, kind, changes):
    """Run a scenario with something wrong in it."""
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    recorder.compares = False
    try:
        for module, name, what in changes:
            setattr(module, name, what)
        return report(body, kind)
    finally:
        recorder.compares = True
        for module, name, what in before:
            setattr(module, name, what)


def main():
    bodies = (barriers, broadcasts, allreduces, allgathervs, mixed, disagreement, left)
    results = {body.__name__: report(body) for body in bodies}
    results["late"] = report(late, timeout_s=0.15)
    for body in (rounds, node_disagreement):
        results[body.__name__] = report(body, Node)
    results["planted"] = {name: planted(*mistake) for name, mistake in mistakes().items()}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
