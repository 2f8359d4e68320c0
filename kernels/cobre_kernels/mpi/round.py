"""One round of a collective over several nodes: in to the leader, across, out to all.

    enter     a step of shared memory: all ranks of the node are here and call the same
    agree     the leaders exchange heads; each learns whether all nodes call the same; if data is to
              move, a second exchange binds them (wait.py)
    ...       data between leaders, by MPI
    hand_out  a step of shared memory: the verdict, and what the stage holds, to all ranks

No rank leaves a round before all ranks of all nodes have entered it. In a collective of many rounds
each one agrees anew: that costs little beside its data, and a rank that is lost in between is then
missed in a wait that can end, not in a call of MPI that cannot.
"""

from cobre_kernels import layout
from cobre_kernels.collective.guard import leave, leave_broken
from cobre_kernels.collective.status import DISAGREE, INTERRUPTED, MPI_FAILED, OK
from cobre_kernels.machine.atomics import load_relaxed, peek, poke, store_relaxed
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls, counts, table
from cobre_kernels.mpi.news import tell_failure
from cobre_kernels.mpi.table import leads, node_size
from cobre_kernels.mpi.wait import await_exchange, outcome_of_news
from cobre_kernels.shm.step import announce, next_generation, publish, record_calls, synchronise
from cobre_kernels.shm.step import await_all as await_node


@routine
def next_half(state, mpi):
    """Begin a round; return the half of the stage that is its own."""
    poke(mpi + table.ROUNDS, peek(mpi + table.ROUNDS) + 1)
    return table.half_of(state, mpi)


@kernel(arguments=4)
def enter_kernel(state, mpi, kind, length, detail):
    """Meet the ranks of this node; OK and DISAGREE are for the leaders to judge."""
    state = address_of(state)
    local = peek(mpi + table.LOCAL)
    outcome = synchronise(local, kind, length, detail)
    if not may_go_on(outcome):
        fail_on_node(state, mpi, outcome)
    return outcome


@routine
def may_go_on(outcome):
    """Whether the leaders will hear of it, so that a verdict will come."""
    return outcome in (OK, DISAGREE)


@kernel(arguments=7)
def agree_kernel(state, mpi, outcome, kind, length, payload, payload_bytes, moves_data):
    """Exchange heads with the other leaders; bind all of them if data is to move.

    A few bytes of payload go with the heads.
    """
    state = address_of(state)
    head = peek(mpi + table.HEAD)
    poke(head + table.DISAGREEMENT, 1 if outcome == DISAGREE else 0)
    poke(head + table.KIND, kind)
    poke(head + table.LENGTH, length)
    if payload_bytes > 0:
        move(head + table.PAYLOAD, payload, payload_bytes)
    outcome = _exchange(state, mpi, table.HEAD_BYTES, False)
    same = outcome == OK and _heads_are_same(mpi, kind, length)
    if outcome == OK and (moves_data or not same):
        outcome = _exchange(state, mpi, table.BOND_BYTES, True)
    if outcome == OK:
        return OK if same else _collect_calls(state, mpi)
    # Whatever ended the wait: who is bound relies on a notice from everyone who gave up before.
    is_own = outcome in (INTERRUPTED, MPI_FAILED)
    tell_failure(state, layout.GAVE_UP if is_own else layout.ARRIVED_IN_TIME)
    return outcome


@routine
def _exchange(state, mpi, length, is_bound):
    """Give every leader the first bytes of every head."""
    if peek(mpi + table.NEWS_SEEN) != 0 and not is_bound:
        return outcome_of_news(state, False)
    poke(mpi + table.EXCHANGES, peek(mpi + table.EXCHANGES) + 1)
    head, heads = peek(mpi + table.HEAD), peek(mpi + table.HEADS)
    code = calls.begin_allgather(mpi, head, heads, length, mpi + table.REQUEST)
    outcome = judge(state, code)
    return await_exchange(state, mpi, is_bound) if outcome == OK else outcome


@routine
def judge(state, code):
    """Turn what MPI returned into a status."""
    if code == 0:
        return OK
    poke(state + layout.MPI_ERROR, code)
    return MPI_FAILED


@routine
def _heads_are_same(mpi, kind, length):
    for node in range(peek(mpi + table.NODES)):
        head = peek(mpi + table.HEADS) + node * table.HEAD_BYTES
        if peek(head + table.DISAGREEMENT) != 0:
            return False
        if peek(head + table.KIND) != kind or peek(head + table.LENGTH) != length:
            return False
    return True


@routine
def _collect_calls(state, mpi):
    """Learn what every rank called; all leaders are here, for all have seen the same heads."""
    local = peek(mpi + table.LOCAL)
    record_calls(local)
    records = peek(mpi + table.STAGE) + table.RECORDS
    first = peek(peek(mpi + table.STARTS) + 8 * peek(mpi + table.NODE))
    width = layout.RECORD_BYTES
    length = peek(local + layout.COMM_SIZE) * width
    move(records + first * width, local + layout.RANK_RECORDS, length)
    lengths, places = counts.by_node(state, mpi, width)
    in_place = peek(mpi + table.IN_PLACE)
    outcome = judge(state, calls.allgatherv(mpi, in_place, 0, records, lengths, places))
    if outcome != OK:
        return outcome
    _take_records(state, mpi)
    return DISAGREE


@routine
def _take_records(state, mpi):
    """Copy the records of the stage into the state, from node-major to rank order."""
    records = peek(mpi + table.STAGE) + table.RECORDS
    for place in range(peek(state + layout.COMM_SIZE)):
        rank = peek(peek(mpi + table.ORDER) + 8 * place)
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        move(record, records + place * layout.RECORD_BYTES, layout.RECORD_BYTES)


@routine
def _show_records(state, mpi):
    records = peek(mpi + table.STAGE) + table.RECORDS
    for place in range(peek(state + layout.COMM_SIZE)):
        rank = peek(peek(mpi + table.ORDER) + 8 * place)
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        move(records + place * layout.RECORD_BYTES, record, layout.RECORD_BYTES)


@kernel(arguments=2)
def hand_out_kernel(state, mpi, outcome):
    """Give the ranks of this node the leader's verdict; see :func:`_hand_out`."""
    return _hand_out(address_of(state), mpi, outcome)


@routine
def _hand_out(state, mpi, outcome):
    """Give the ranks of this node the leader's verdict, and whatever is in the stage by now.

    The leader may have to wait long for other nodes, so its followers wait without a limit: it
    has one, and if it dies or gives up they see that.
    """
    if outcome == INTERRUPTED:
        return outcome  # of this rank alone; the others will see that it has gone
    local = peek(mpi + table.LOCAL)
    stage = peek(mpi + table.STAGE)
    if leads(mpi):
        if outcome != OK:
            _show_records(state, mpi)
        store_relaxed(stage + table.VERDICT, outcome)
        store_relaxed(stage + table.ERROR, peek(state + layout.MPI_ERROR))
        store_relaxed(stage + table.WAITED, peek(state + layout.FAILURE_NS))
    poke(local + layout.TIMEOUT_NS, 0)
    generation = next_generation(local)
    publish(local, generation, 0, 0, 0)
    step = await_node(local, generation, 0, 0)
    poke(local + layout.TIMEOUT_NS, peek(state + layout.TIMEOUT_NS))
    if step != OK:
        fail_on_node(state, mpi, step)
        return step
    verdict = load_relaxed(stage + table.VERDICT)
    if verdict != OK and not leads(mpi):
        _take_records(state, mpi)
        poke(state + layout.MPI_ERROR, load_relaxed(stage + table.ERROR))
        poke(state + layout.FAILURE_NS, load_relaxed(stage + table.WAITED))
    return verdict


@routine
def fail_on_node(state, mpi, outcome):
    """A step of shared memory has failed: keep why, by the ranks' own numbers, and tell."""
    local = peek(mpi + table.LOCAL)
    first = peek(peek(mpi + table.STARTS) + 8 * peek(mpi + table.NODE))
    for place in range(node_size(mpi, peek(mpi + table.NODE))):
        rank = peek(peek(mpi + table.ORDER) + 8 * (first + place))
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        source = local + layout.RANK_RECORDS + place * layout.RECORD_BYTES
        poke(record + layout.REASON, peek(source + layout.REASON))
    poke(state + layout.FAILURE_NS, peek(local + layout.FAILURE_NS))
    for word in range(3):
        offset = layout.PENDING_EXCEPTION + 8 * word
        poke(state + offset, peek(local + offset))
    tell_failure(state, layout.GAVE_UP if outcome == INTERRUPTED else layout.ARRIVED_IN_TIME)


@routine
def finish(state, mpi, outcome, kind):
    """Leave the collective: free for the next one, or broken with the cause on record."""
    if outcome == OK:
        leave(state)
    else:
        if outcome == MPI_FAILED and leads(mpi):
            tell_failure(state, layout.GAVE_UP)
        announce(peek(mpi + table.LOCAL), layout.FAILED)
        leave_broken(state, outcome, kind)
    return outcome
