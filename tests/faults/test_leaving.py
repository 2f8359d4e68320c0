"""After a call has returned on a rank, nothing writes to its output, also if the call has failed.

The ranks are forks, and each trial has new ones, because a fault breaks their communicator.
"""

import ctypes
import mmap
import os
import random
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from cobre_kernels.machine.record import peek_now, poke_now
from cobre_kernels.shm.control import CELL, HAS_FAILED, IN_REGION, RANK_BITS
from cobre_kernels.shm.ways import BOTH, READ, SLOTS, STREAMED

from cobre_comm import CollectiveFailed, CommError
from cobre_comm.testing.cases.raised import met
from cobre_comm.testing.cases.waiting import wait_until
from cobre_comm.testing.ranks.outcome import values_of
from tests import forked

MIB = 2**20
LIMIT = {"COBRE_SHM_TIMEOUT_SECS": "0.4"}
LONGER_S = 1.5  # limit of a large call, which one rank may begin much later on a busy machine
LONGER = {"COBRE_SHM_TIMEOUT_SECS": str(LONGER_S)}
PATTERN = 0xA5  # no element of the data
FEWER = 8  # elements; a rank with so many fewer disagrees


class Call(NamedTuple):
    """A collective, the way that it is forced to take, and its number of ranks."""

    operation: str
    way: int
    size: int


CALLS = {
    "broadcast-slots": Call("broadcast", SLOTS, 3),
    "broadcast-streamed": Call("broadcast", STREAMED, 3),
    "broadcast-read": Call("broadcast", READ, 3),
    "broadcast-both": Call("broadcast", BOTH, 3),
    "broadcast-both-of-two": Call("broadcast", BOTH, 2),
    "allgatherv-slots": Call("allgatherv", SLOTS, 3),
    "allgatherv-read": Call("allgatherv", READ, 3),
    "allreduce-halves": Call("allreduce", SLOTS, 2),
}
SHARED = Call("allreduce in a region", SLOTS, 2)
READING = {name: CALLS[name] for name in ("broadcast-read", "broadcast-both", "allgatherv-read")}


def prepared(comm, call, size_bytes, root=0):
    """Return a rank's output, and a function that makes the call with a payload of that size."""
    comm._comm.node.forced_way = call.way
    own = np.full(size_bytes // 8, comm.rank + 1, np.int64)
    if call.operation == SHARED.operation:
        region = comm.create_shared_region((1 + comm.size) * own.size, np.int64)
        recv, *sends = (region.part(at * own.size, (at + 1) * own.size) for at in range(3))
        sends[comm.rank][:] = own
        return recv, partial(comm.allreduce, sends[comm.rank], recv)
    if call.operation == "broadcast":
        return own, partial(comm.broadcast, own, root)
    if call.operation == "allreduce":
        recv = np.zeros_like(own)
        return recv, partial(comm.allreduce, own, recv)
    count = own.size // comm.size
    recv = np.zeros(count * comm.size, np.int64)
    tables = np.full(comm.size, count), np.arange(comm.size) * count
    return recv, partial(comm.allgatherv, own[:count], recv, *tables)


def fill(output):
    """Fill an output with a pattern that no call writes."""
    output.view(np.uint8)[:] = PATTERN


def is_untouched(output):
    return bool((output.view(np.uint8) == PATTERN).all())


def shared_words(rows, columns):
    """Return words that this process shares with its forks."""
    return np.frombuffer(mmap.mmap(-1, rows * columns * 8), np.int64).reshape(rows, columns)


# A writer that is stopped between two of its instructions cannot be made at will, so the word that
# such a writer leaves is stored by hand.
NUMBER = 7 << RANK_BITS | 1  # of a write to the array of rank 1
ENDS = ("the write ends", "the mark tells it", "the writer dies", "it goes elsewhere")


def fail_while_written(comm, end, words):
    """Be rank 0, which seems to write to rank 1, or be rank 1, which gives up."""
    blocks = comm._comm.node.control.blocks
    buf = np.zeros(2**14)
    if comm.rank == 1:
        words[0][1:3] = os.getpid(), comm._comm.node.reading.mark
        caught = met(comm.broadcast, buf, 0)
        told, words[0][3] = bool(words[0][0]), 1
        return told, type(caught), caught.ranks
    elsewhere = end == "it goes elsewhere"
    poke_now(blocks[0].writing, NUMBER + elsewhere)
    assert wait_until(lambda: peek_now(blocks[1].condition) == HAS_FAILED)
    if elsewhere:
        assert wait_until(lambda: words[0][3])
        return None
    time.sleep(0.1)  # rank 1 must not return meanwhile
    words[0][0] = 1
    if end == "the write ends":
        poke_now(blocks[0].writing, 0)
    elif end == "the mark tells it":
        with Path(f"/proc/{words[0][1]}/mem").open("r+b", buffering=0) as memory:
            memory.seek(words[0][2])
            memory.write(NUMBER.to_bytes(8, "little"))
        assert wait_until(lambda: words[0][3])
    else:
        os.kill(os.getpid(), signal.SIGKILL)
    return None


@pytest.mark.parametrize("end", ENDS)
def test_a_rank_that_fails_awaits_who_writes_to_its_array(end):
    words = shared_words(1, 4)
    _, failing = forked.ranks("shm", 2, fail_while_written, end, words, env=LIMIT)
    [(told, error, ranks)] = values_of([failing])
    assert told == (end != "it goes elsewhere")
    assert (error, ranks) == (CollectiveFailed, (0,))


def come_late(comm, call, words):
    """Be the last rank, which gives up, or be one of the others, which come later."""
    output, make = prepared(comm, call, MIB)
    last = comm.size - 1
    if comm.rank != last:
        assert wait_until(lambda: words[last, 0])
    caught = met(make)
    fill(output)
    words[comm.rank, 0] = 1
    assert wait_until(lambda: words[: comm.size, 0].all())
    return type(caught), is_untouched(output)


@pytest.mark.parametrize("name", CALLS)
def test_a_late_rank_writes_to_no_output_of_a_rank_that_has_given_up(name):
    """A rank that has shown its array in the first step gives up, and then the root arrives.

    If the call has only one step, it succeeds on a late rank.
    """
    call = CALLS[name]
    outcomes = forked.ranks("shm", call.size, come_late, call, shared_words(4, 1), env=LIMIT)
    errors, untouched = zip(*values_of(outcomes), strict=True)
    assert all(untouched)
    assert errors[-1] is CollectiveFailed
    assert {*errors} <= {CollectiveFailed, type(None)}


def fail_while_read(comm, call, words):
    """Be rank 0, which gives up and changes its array, or be rank 1, which reads the array later.

    Rank 0 seems to have entered the last step. A rank that is stopped for long between two
    instructions may find its peers in this state, but no test can stop a rank there.
    """
    _, make = prepared(comm, call, MIB)
    cells = comm._comm.node.control.blocks[0].cells
    if comm.rank == 1:
        assert wait_until(lambda: words[0, 0])
        late = met(make)
        words[0, 1] = 1
        return type(late)
    caught, generation = met(make), comm._comm.node.generation
    fill(make.args[0])
    last, first = cells[generation + 1 & 1], cells[generation & 1]
    ctypes.memmove(last.address, first.address, CELL.size_bytes)
    poke_now(last.signature, peek_now(first.signature) & ~IN_REGION)
    poke_now(last.arrived, generation + 1)
    words[0, 0] = 1
    assert wait_until(lambda: words[0, 1])
    return type(caught)


@pytest.mark.parametrize("call", [*READING.values(), SHARED], ids=[*READING, "in-region"])
def test_a_rank_that_reads_what_a_program_has_changed_gets_an_error(call):
    call = call._replace(size=2)
    outcomes = forked.ranks("shm", 2, fail_while_read, call, shared_words(1, 2), env=LIMIT)
    assert values_of(outcomes) == [CollectiveFailed, CollectiveFailed]


# Faults at moments inside a call. A row of the shared words is that of a rank.
STATE, PID, WRITING, TOOK_NS = range(4)
READY, RETURNED = 1, 2
GO, IS_OVER = range(2)  # columns of the last row
LARGE_BYTES = 64 * MIB
SIGNALS = {"interrupt": signal.SIGINT, "stop": signal.SIGSTOP, "kill": signal.SIGKILL}
EVENTS = (*SIGNALS, "other length", "other operation")
TRIALS = 6  # of a call and an event
IN_A_WRITE = -1.0


class Strike(NamedTuple):
    """What happens to which rank, and when, as a part of the time that the call takes."""

    event: str
    victim: int
    moment: float


def strikes(call, event, trials, seed):
    """Return strikes on each rank in turn; if the root writes, every second one is in a write."""
    dice = random.Random(f"{call} {event} {seed}")
    return [
        Strike(
            event,
            number // 2 % call.size,
            IN_A_WRITE if call.way == BOTH and number % 2 else dice.uniform(0.0, 1.0),
        )
        for number in range(trials)
    ]


def be_struck(comm, call, strike, words):
    """Make a call that a fault strikes; return its end, and whether its output is untouched."""
    row = words[comm.rank]
    output, make = prepared(comm, call, LARGE_BYTES)
    make()
    comm.barrier()
    began = time.monotonic_ns()
    make()
    row[TOOK_NS] = time.monotonic_ns() - began
    if comm.rank == strike.victim and strike.event == "other length":
        output, make = prepared(comm, call, LARGE_BYTES - 8 * FEWER)
    elif comm.rank == strike.victim and strike.event == "other operation":
        make = comm.barrier
    comm.barrier()
    row[PID], row[WRITING] = os.getpid(), comm._comm.node.control.blocks[0].writing
    end = "returned"
    try:
        row[STATE] = READY
        try:
            while not words[-1, GO]:
                time.sleep(0.0001)
            make()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except (CommError, KeyboardInterrupt) as error:
        end = type(error).__name__
    fill(output)
    row[STATE] = RETURNED
    assert wait_until(lambda: words[-1, IS_OVER])
    return end, is_untouched(output)


def do_strike(strike, words, size):
    """Send the signal at its moment, continue a stopped victim, await ranks, and end the trial."""
    rows, others = words[:size], [rank for rank in range(size) if rank != strike.victim]
    assert wait_until(lambda: (rows[:, STATE] == READY).all())
    words[-1, GO] = 1
    if strike.event in SIGNALS:
        pid = int(rows[strike.victim, PID])
        await_moment(strike, rows)
        os.kill(pid, SIGNALS[strike.event])
        if strike.event == "stop":
            # If the victim was stopped right before it wrote to a rank's array, this rank waits.
            wait_until(lambda: (rows[others, STATE] == RETURNED).all(), LONGER_S + 3.0)
            os.kill(pid, signal.SIGCONT)
    ending = others if strike.event == "kill" else [*range(size)]
    wait_until(lambda: (rows[ending, STATE] == RETURNED).all())
    time.sleep(0.03)
    words[-1, IS_OVER] = 1


def await_moment(strike, rows):
    """Wait for the moment of a strike."""
    took_s = rows[:, TOOK_NS].max() / 1e9
    until = time.monotonic() + took_s * abs(strike.moment)
    is_root, at = strike.victim == 0, int(rows[0, WRITING])
    with Path(f"/proc/{rows[0, PID]}/mem").open("rb", buffering=0) as memory:
        while time.monotonic() < until:
            if strike.moment == IN_A_WRITE:
                found = int.from_bytes(os.pread(memory.fileno(), 8, at), "little")
                if found and (is_root or found & (1 << RANK_BITS) - 1 == strike.victim):
                    return


def ends_of(call, strike):
    """Run a trial; return the ends of the survivors; no output may be touched."""
    words = shared_words(call.size + 1, 4)
    striker = threading.Thread(target=do_strike, args=(strike, words, call.size))
    striker.start()
    outcomes = forked.ranks("shm", call.size, be_struck, call, strike, words, env=LONGER)
    striker.join()
    is_lost = [o.exit_code == -signal.SIGKILL and o.rank == strike.victim for o in outcomes]
    left = [o for o, lost in zip(outcomes, is_lost, strict=True) if not lost]
    assert len(left) == call.size - (strike.event == "kill")
    values = values_of(left)
    assert all(untouched for _, untouched in values), (strike, values)
    return {end for end, _ in values}


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_written_after_a_call_has_returned(name, event):
    ends = set()
    for seed in range(1, 5):  # on a loaded machine all strikes of a seed may come after their calls
        some = strikes(CALLS[name], event, TRIALS, seed)
        ends |= set().union(*(ends_of(CALLS[name], strike) for strike in some))
        if ends - {"returned"}:
            break
    assert ends - {"returned"}, "no strike was inside a call"
    assert event == "interrupt" or "KeyboardInterrupt" not in ends
    assert event in SIGNALS or "returned" not in ends
