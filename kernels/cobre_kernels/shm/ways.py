"""Which way a large call of private memory takes: a communicator measures, and takes the fastest.

========  ==========================================================================================
SLOTS     through slots: a byte is copied by the rank that owns it, and by each rank that reads it
STREAMED  as SLOTS, but ranks write results past their caches
READ      each rank reads the arrays of other ranks where they are (``reading.py``): one copy
BOTH      in a broadcast: as READ, and meanwhile the root writes a share to each reader's array
========  ==========================================================================================

All ways give the same bits. Which way is the fastest depends on processor, caches, hypervisor, data
and number of ranks, so no constant can say it. The first calls of an operation and size (by powers
of two) are *trials*. At first TRIALS calls take the present way, to warm up. Then TRIALS calls take
each way, because the first calls of a way find in the caches what another way has left there. In
the first step of a trial each rank shows when it entered the call, and when it ended the trial
before. So all ranks learn one time for the trial before: from the moment when the last rank had
entered it to the moment when the last rank had ended it. Therefore all decide the same.

The ways are tried again later, because the distance of caches may have changed, or the program may
call with other data. The trials begin again after so many calls that trials of slower ways cost a
small part of the time of all calls.

If the system denies READ and BOTH, the other two ways are tried. If a rank receives in a region,
the call goes through slots, and is no trial. The rows of ``node.large`` change only in calls that
succeed, so all ranks have equal rows.
"""

from cobre_kernels.collective.calls import ALLGATHERV, BROADCAST
from cobre_kernels.collective.comm import SIZES
from cobre_kernels.collective.regions import NOWHERE
from cobre_kernels.collective.status import OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import is_large
from cobre_kernels.shm.reading import show_array, shown_by

FASTEST = -1  # in ``forced_way``
SLOTS, STREAMED, READ, BOTH = range(4)
NAMES = ("slots", "streamed", "read", "both ends")  # of the ways, for messages
OPERATIONS = (BROADCAST, ALLGATHERV)  # that have ways, in the order of their rows
LEAST_SHIFT = 16  # a call of less than 64 KiB goes through slots
TRIALS = 8  # of each way
MOST_TRIED = TRIALS * (1 + len(NAMES)) + 1  # calls after which ranks know the fastest of all ways
LEAST_GAIN = 1.03  # another way is taken if it is faster by this factor
LEAST_CALLS = 128  # the fewest calls until ways are tried again
PART = 32  # trials of slower ways cost a 32nd of the time of all calls, or less
NOT_MEASURED = -1
NEVER_NS = 2**60


@routine
def choose_way(comm, operation, size_bytes, is_private):
    """Return the way of a call, before its first step; the same way on all ranks."""
    node, own = comm.node, comm.node.reading.own
    node.measured = NOT_MEASURED
    if size_bytes >> LEAST_SHIFT == 0 or not is_private or node.size == 1:
        return SLOTS
    ways = BOTH + 1 if operation == BROADCAST else READ + 1
    if not libc.CAN_REACH_PROCESSES or node.reading.is_refused:
        ways = STREAMED + 1
    if node.forced_way != FASTEST:
        return min(node.forced_way, ways - 1)
    node.measured = _row_of(operation, size_bytes)
    row = node.large[node.measured]
    if row.ways != ways:
        row.ways, row.calls, row.until, row.way = ways, 0, LEAST_CALLS, ways - 1
    elif row.calls >= row.until:
        row.calls = 0
    if not _is_tried(row):
        return row.way
    own.began_ns, own.ended_ns = libc.monotonic_ns(), row.ended_ns
    return row.way if row.calls < TRIALS else min(row.calls // TRIALS - 1, ways - 1)


@routine
def is_streamed(comm, way, size_bytes):
    """Tell whether a rank that receives so many bytes through slots writes them past its caches."""
    is_chosen = comm.node.measured != NOT_MEASURED or comm.node.forced_way != FASTEST
    return way == STREAMED if is_chosen else is_large(size_bytes)


@routine
def _row_of(operation, size_bytes):
    size = 0
    while size < SIZES - 1 and size_bytes >> LEAST_SHIFT + size + 1 != 0:
        size += 1
    return size if operation == BROADCAST else size + SIZES


@routine
def _is_tried(row):
    """Tell whether a call is a trial, or the call in which ranks learn of the last trial."""
    return row.calls <= TRIALS * (1 + row.ways)


@routine
def _is_trial(comm):
    return comm.node.measured != NOT_MEASURED and _is_tried(comm.node.large[comm.node.measured])


@routine
def show_times(comm, generation):
    """In a trial of SLOTS or STREAMED, put this rank's times into its cell of the first step."""
    if _is_trial(comm):
        show_array(comm, generation, NOWHERE, 1)


@routine
def learn_times(comm, generation):
    """After a trial's first step, note the time of the trial before; after the last, decide."""
    if not _is_trial(comm):
        return
    row = comm.node.large[comm.node.measured]
    began_ns, ended_ns = 0, 0
    for rank in range(comm.node.size):
        shown = shown_by(comm, rank, generation)
        began_ns, ended_ns = max(began_ns, shown.began_ns), max(ended_ns, shown.ended_ns)
    if row.calls > TRIALS:
        _note(row, row.calls - 1 - TRIALS, ended_ns - row.began_ns)
    row.began_ns = began_ns
    if row.calls == TRIALS * (1 + row.ways):
        _decide(row)


@routine
def _decide(row):
    """Take the fastest way, and set after how many calls the ways are tried again."""
    for way in range(row.ways):
        if row.tried[way].second_ns * LEAST_GAIN < row.tried[row.way].second_ns:
            row.way = way
    fastest_ns, lost_ns = row.tried[row.way].second_ns, 0
    for way in range(row.ways):
        lost_ns += TRIALS * (row.tried[way].second_ns - fastest_ns)
    row.until = max(LEAST_CALLS, PART * lost_ns // fastest_ns)


@routine
def _note(row, call, spent_ns):
    """Note the time of a trial, but not of the first trial of a way.

    Before that first trial another way has filled the caches. ``call`` is the number of the trial,
    without the calls that warm up. Ways are compared by the second shortest time, because in many
    trials a rank, or the machine, has been held up.
    """
    tried = row.tried[call // TRIALS]
    if call % TRIALS == 0:
        tried.fastest_ns, tried.second_ns = NEVER_NS, NEVER_NS
    elif spent_ns < tried.fastest_ns:
        tried.fastest_ns, tried.second_ns = spent_ns, tried.fastest_ns
    else:
        tried.second_ns = min(tried.second_ns, spent_ns)


@routine
def end_way(comm, outcome):
    """Count a call that has succeeded, and note when it ended; return its outcome."""
    if comm.node.measured != NOT_MEASURED and outcome == OK:
        row = comm.node.large[comm.node.measured]
        if _is_tried(row):
            row.ended_ns = libc.monotonic_ns()
        row.calls += 1
    return outcome
