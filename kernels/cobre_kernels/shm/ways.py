"""Which way a large call of private memory takes: a communicator measures, and takes the fastest.

========  ==========================================================================================
SLOTS     through slots: a byte is copied by its owner and by each reader
READ      each rank reads the others' arrays where they are, by process_vm_readv(2): one copy
BOTH      of a broadcast: as READ, and the root meanwhile writes its share of each reader's bytes
========  ==========================================================================================

All give the same bits. Which is the fastest depends on processor, caches, hypervisor, data and
number of ranks, so no constant knows it. The first calls of an operation and size (by powers of
two) *try* the ways in turn, TRIALS times each. In its first step each rank shows when it entered
the call, and when it ended the call before. So all ranks learn the same time of that call, from its
last rank's entry to the end of its last rank, and decide the same. A way costs the mean of its
trials without the slowest trial, in which a rank may not have run. After CALLS calls the ways are
tried again, because the distance of caches may have changed.

A call is not measured and goes through slots if the system denies READ, or if a rank receives in a
region. The rows of ``comm.node.large`` change in calls that succeed, so they are equal on all ranks.
"""

from cobre_kernels.collective.calls import ALLGATHERV, ALLREDUCE, BROADCAST
from cobre_kernels.collective.comm import SIZES
from cobre_kernels.collective.regions import NOWHERE
from cobre_kernels.collective.status import OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.compiled import routine
from cobre_kernels.shm.reading import show_array, shown_by

FASTEST = -1  # in ``forced_way``
SLOTS, READ, BOTH = range(3)
WAYS = ("slots", "read", "both ends")  # for messages
OPERATIONS = (BROADCAST, ALLGATHERV, ALLREDUCE)  # in the order of their rows
LEAST_SHIFT = 16  # a call of less than 256 KiB fits into slots, in one step
TRIALS = 8  # of each way, one after the other
CALLS = 4096
NOT_MEASURED = -1


@routine
def choose_way(comm, operation, size_bytes, is_private):
    """Return the way of a call, before its first step; the same on all ranks."""
    node, own = comm.node, comm.node.reading.own
    node.measured = NOT_MEASURED
    if size_bytes >> LEAST_SHIFT == 0 or not is_private or node.size == 1:
        return SLOTS
    if not libc.CAN_REACH_PROCESSES or node.reading.is_refused:
        return SLOTS
    ways = 3 if operation == BROADCAST else 2
    if node.forced_way != FASTEST:
        return min(node.forced_way, ways - 1)
    node.measured = _row_of(operation, size_bytes)
    row = node.large[node.measured]
    if row.calls > CALLS:
        row.calls = 0
    row.ways = ways
    if not _is_tried(row):
        return row.way
    own.began_ns, own.ended_ns = libc.monotonic_ns(), row.ended_ns
    return min(row.calls // TRIALS, ways - 1)


@routine
def _row_of(operation, size_bytes):
    size = 0
    while size < SIZES - 1 and size_bytes >> LEAST_SHIFT + size + 1 != 0:
        size += 1
    if operation == BROADCAST:
        return size
    return size + SIZES if operation == ALLGATHERV else size + 2 * SIZES


@routine
def _is_tried(row):
    """Tell whether this call is a trial, or the one in which ranks learn of the last trial."""
    return row.calls <= TRIALS * row.ways


@routine
def _trial(comm):
    return comm.node.measured != NOT_MEASURED and _is_tried(comm.node.large[comm.node.measured])


@routine
def show_times(comm, generation):
    """In a trial of slots, put this rank's times into its cell of the first step."""
    if _trial(comm):
        show_array(comm, generation, NOWHERE, 1)


@routine
def learn_times(comm, generation):
    """After the first step of a trial, note what the trial before has cost; decide at last."""
    if not _trial(comm):
        return
    row = comm.node.large[comm.node.measured]
    began_ns, ended_ns = 0, 0
    for rank in range(comm.node.size):
        shown = shown_by(comm, rank, generation)
        began_ns, ended_ns = max(began_ns, shown.began_ns), max(ended_ns, shown.ended_ns)
    if row.calls > 0:
        _note(row, row.calls - 1, ended_ns - row.began_ns)
    row.began_ns = began_ns
    if row.calls == TRIALS * row.ways:
        row.way = SLOTS
        for way in range(1, row.ways):
            if _cost(row, way) < _cost(row, row.way):
                row.way = way


@routine
def _note(row, call, spent_ns):
    """Note the time of a trial, unless it is the first of its way, when caches are as of another."""
    tried = row.tried[call // TRIALS]
    if call % TRIALS == 0:
        tried.total_ns, tried.slowest_ns = 0, 0
    else:
        tried.total_ns += spent_ns
        tried.slowest_ns = max(tried.slowest_ns, spent_ns)


@routine
def _cost(row, way):
    return row.tried[way].total_ns - row.tried[way].slowest_ns


@routine
def give_up_trials(comm):
    """Let calls of this kind go through slots until the ways are tried again."""
    if comm.node.measured != NOT_MEASURED:
        row = comm.node.large[comm.node.measured]
        row.calls, row.way = TRIALS * row.ways + 1, SLOTS


@routine
def end_way(comm, outcome):
    """Count a call that has succeeded, and note when it ended; return its outcome."""
    if comm.node.measured != NOT_MEASURED and outcome == OK:
        row = comm.node.large[comm.node.measured]
        if _is_tried(row):
            row.ended_ns = libc.monotonic_ns()
        row.calls += 1
    return outcome
