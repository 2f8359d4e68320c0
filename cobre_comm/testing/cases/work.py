"""Work that is shared out: each round gives every item once, to whichever rank claims it."""

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from cobre_comm import CollectiveFailed, InvalidCommunicator
from cobre_comm.testing.cases.calls import by_caller, chosen
from cobre_comm.testing.cases.case import BOTH, EVERY, NEVER, QUICK, Case, Together
from cobre_comm.testing.cases.faults.calling import FORKS, are_refused_in_child
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.raised import met, raises

COUNTS = [0, 1, 2, 7, 1000]
PAUSE_S = 0.02


def _claim(work):
    return work.claim()


def _claim_all(work, times, seen):
    """Note which items this rank gets, in order; return the number of items."""
    claimed = 0
    item = work.claim()
    while item >= 0:
        times[item] += 1
        seen[claimed] = item
        claimed += 1
        item = work.claim()
    return claimed


def _fields(work):
    return work.count, work.start, work.stop


CLAIM, CLAIM_ALL, FIELDS = map(by_caller, (_claim, _claim_all, _fields))


def rounds(count):
    """Yield the arguments of several resets; they are valid, and the same on all ranks."""
    draw = np.random.default_rng(count)
    costs = draw.exponential(size=count)
    yield {}
    yield {"order": draw.permutation(count)}
    yield {"costs": costs}
    yield {"order": np.argsort(-costs, kind="stable"), "costs": costs}
    yield {"order": list(range(count))[::-1], "costs": [0] * count}
    yield {"costs": np.eye(1, count, count // 2)[0]}
    yield {}


def result(item, number):
    """Return the result of an item in a round; each item and each round has other bits."""
    return np.sin(1.0 + item) / (1.0 + number)


def right_digest(count):
    """Return the digest of all results in the order of items, whichever rank would compute them."""
    digest = hashlib.sha256()
    for number, _ in enumerate(rounds(count)):
        values = [result(item, number) for item in range(count)]
        digest.update(np.array(values, dtype=np.float64).tobytes())
    return digest.hexdigest()


def claim_rounds(comm, caller, count):
    """Claim all items of several rounds; return a digest of their results, and all blocks."""
    caller, digest, blocks = chosen(caller, comm.rank), hashlib.sha256(), []
    with comm.create_work(count) as work:
        for number, arguments in enumerate(rounds(count)):
            work.reset(**arguments)
            times, seen = np.zeros(count), np.zeros(count, np.int64)
            mine = seen[: CLAIM_ALL[caller](work, times, seen)]
            assert FIELDS[caller](work) == (count, work.start, work.stop)
            assert ((work.start <= mine) & (mine < work.stop)).all(), "an item of another node"
            place = np.argsort(arguments.get("order", np.arange(count)))
            assert (np.diff(place[mine]) > 0).all(), f"not in their order: {mine}"
            results = np.zeros(count)
            results[mine] = [result(item, number) for item in mine]
            if count:
                comm.allreduce(times, times)
                comm.allreduce(results, results)
            assert (times == 1).all(), f"items {np.nonzero(times != 1)[0]} came {times} times"
            digest.update(results.tobytes())
            blocks.append((work.start, work.stop))
    return digest.hexdigest(), blocks


def have_the_digest_of_equal_shares(ran):
    nodes = ran.settings.nodes(ran.backend, ran.size)
    counts = ran.cell.arguments[0] if isinstance(ran.cell.arguments[0], Together) else COUNTS
    for number, count in enumerate(counts):
        told = [values[number] for values in ran.values]
        assert {digest for digest, _ in told} == {right_digest(count)}
        for each in zip(*(blocks for _, blocks in told), strict=True):
            check_blocks(count, nodes, each)


def check_blocks(count, nodes, blocks):
    """Check that the ranks of a node have the same block, and that blocks hold each item once."""
    of_nodes = [{blocks[r] for r, n in enumerate(nodes) if n == node} for node in set(nodes)]
    assert all(len(each) == 1 for each in of_nodes), f"ranks of a node differ: {blocks}"
    ascending = sorted(block for [block] in of_nodes)
    edges = [0, *(edge for block in ascending for edge in block), count]
    assert edges[::2] == edges[1::2], f"blocks {ascending} are not {count} items"


def shares(comm, count):
    """Return this node's block without costs, and with costs that are 0 in the last half."""
    with comm.create_work(count) as work:
        even = work.start, work.stop
        work.reset(costs=np.repeat([1, 0], count // 2))
        raises(TypeError, work.reset, costs=["1"] * count)
        return even, (work.start, work.stop)


def are_in_proportion(ran):
    nodes = ran.settings.nodes(ran.backend, ran.size)
    [count] = ran.cell.arguments
    order = sorted(set(nodes), key=nodes.index)
    before = [sum(nodes.count(n) for n in order[:k]) for k in range(len(order) + 1)]
    for rank, (even, uneven) in enumerate(ran.values):
        k = order.index(nodes[rank])
        assert even == tuple(count * b // ran.size for b in before[k : k + 2])
        low, high = (count // 2 * b / ran.size for b in before[k : k + 2])
        assert abs(uneven[0] - low) <= 1
        assert abs(uneven[1] - (count if high == count // 2 else high)) <= 1


def late_reset(comm, caller, count):
    """A rank that is late for a reset stays in the old round, without items of the new round."""
    caller = chosen(caller, comm.rank)
    work, is_late = comm.create_work(count), comm.rank == comm.size - 1
    for _ in range(6):
        times, here = np.zeros(count), slice(work.start, work.stop)
        if is_late:
            time.sleep(PAUSE_S)  # meanwhile the others are in the reset
            CLAIM_ALL[caller](work, times, np.zeros(count, np.int64))
        else:
            for _ in range(3):
                item = CLAIM[caller](work)
                times[item] += item >= 0
        work.reset()
        comm.allreduce(times, times)
        assert (times <= 1).all(), f"items came {times} times"
        assert not is_late or (times[here] == 1).all(), f"items came {times} times"


def contend(comm, caller, count):
    """Ranks compete: each claims items as fast as it can."""
    caller, work = chosen(caller, comm.rank), comm.create_work(count)
    for _ in range(3):
        times = np.zeros(count)
        comm.barrier()
        CLAIM_ALL[caller](work, times, np.zeros(count, np.int64))
        comm.allreduce(times, times)
        assert (times == 1).all(), f"{np.count_nonzero(times != 1)} items did not come once"
        work.reset()


def claim_in_threads(comm, caller, count):
    """Several threads of one rank claim items at the same time."""
    claim_all, work = CLAIM_ALL[caller], comm.create_work(count)
    for _ in range(3):
        each, seen = np.zeros((3, count)), np.zeros((3, count), np.int64)
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(claim_all, [work] * 3, each, seen))
        total = np.sum(each, axis=0)
        comm.allreduce(total, total)
        assert (total == 1).all(), f"items came {total} times"
        work.reset()


def reset_beside_claims(comm, caller):
    """A thread that claims while its rank resets gets an item, once, or an error."""
    claim, count, rounds = CLAIM[caller], 50, 60
    work, is_over, wrong = comm.create_work(count), threading.Event(), []
    begun = [np.zeros(count)]

    def claim_on():
        while not is_over.is_set():
            error = met(claim, work)
            if error is not None and "another thread of this rank" not in str(error):
                wrong.append(error)
                return

    claim(work)  # compiles
    thread = threading.Thread(target=claim_on)
    thread.start()
    for _ in range(rounds):
        work.reset()
    is_over.set()
    thread.join()
    assert not wrong, wrong
    work.reset()
    CLAIM_ALL[caller](work, begun[0], np.zeros(count, np.int64))
    comm.allreduce(begun[0], begun[0])
    assert (begun[0] == 1).all()


def costs(comm, caller):
    """Long items cost more, the sum of costs is the time of all ranks, and all ranks agree."""
    count = 3 * comm.size
    slow = {0, count - 1}
    work = comm.create_work(count)
    untouched = work.measured_costs()
    assert untouched.tolist() == [0.0] * count
    for _ in range(2):
        comm.barrier()
        began, mine = time.perf_counter(), 0
        while (item := CLAIM[caller](work)) >= 0:
            time.sleep(4 * PAUSE_S if item in slow else PAUSE_S)
            mine += 1
        took = np.array([time.perf_counter() - began])
        measured = work.measured_costs()
        comm.allreduce(took, took)
        assert (measured >= PAUSE_S / 2).all(), measured
        assert min(measured[item] for item in slow) >= 2 * PAUSE_S, measured
        assert measured.sum() <= 1.1 * took[0], (measured, took)
        same = measured.copy()
        comm.broadcast(same)
        assert same.tobytes() == measured.tobytes()
        work.reset(order=np.argsort(-measured, kind="stable"), costs=measured)
    return sorted([work.start, work.stop])


def bad_arguments(comm):
    """Each wrong call is refused before anything is sent; work and communicator stay usable."""
    for n, error in [(-1, ValueError), (2**62, ValueError), (1.5, TypeError), (True, TypeError)]:
        told = str(raises(error, comm.create_work, n))
        assert told.startswith("create_work: n must be"), told
    work = comm.create_work(np.int32(3))
    for order, error, words in [
        ([0, 1], ValueError, "one number for each of 3 items, got shape (2,)"),
        ([[0, 1, 2]], ValueError, "one number for each of 3 items"),
        ([0, 1, 1], ValueError, "has item 1 more than once"),
        ([0, 1, 3], ValueError, "has 3, which is none of 3 items"),
        (np.array([0, 1, 2**64 - 1], np.uint64), ValueError, "which is none of 3 items"),
        ([0, 1, -1], ValueError, "has -1"),
        ([0.0, 1.0, 2.0], TypeError, "must be integers, got float64"),
        ([True, False, True], TypeError, "must be integers, got bool"),
        (3, ValueError, "got shape ()"),
    ]:
        told = str(raises(error, work.reset, order=order))
        assert told.startswith("reset: order"), told
        assert words in told, told
    for costs, error, words in [
        ([1, 2], ValueError, "one number for each"),
        ([1, 2, -1], ValueError, "finite and at least 0, got -1"),
        ([1, 2, np.nan], ValueError, "finite"),
        ([1, 2, np.inf], ValueError, "finite"),
        (["1", "2", "3"], TypeError, "must be numbers"),
        ([1j, 2, 3], TypeError, "must be numbers"),
    ]:
        told = str(raises(error, work.reset, costs=costs))
        assert told.startswith("reset: costs"), told
        assert words in told, told
    seen = np.zeros(3)
    CLAIM_ALL["python"](work, seen, np.zeros(3, np.int64))
    comm.allreduce(seen, seen)
    assert seen.tolist() == [1.0] * 3
    four_in_a_row(comm, "python")


def closed(comm, caller):
    """A claim raises if the work or its communicator is closed; the work's fields stay readable."""
    claim, own = CLAIM[caller], comm.split(0)
    work, other = own.create_work(5), own.create_work(5)
    work.close()
    work.close()
    for call in (
        partial(claim, work),
        work.claim,
        work.reset,
        work.measured_costs,
        partial(list, work),
    ):
        told = str(raises(InvalidCommunicator, call))
        assert told == "this work is closed; create another one"
    assert FIELDS[caller](work)[0] == 5
    assert repr(work) == "Work(count=5, closed)"
    own.barrier()
    own.close()
    for call in (partial(claim, other), other.claim, other.reset, other.measured_costs):
        told = str(raises(InvalidCommunicator, call))
        assert told == "this communicator is closed; create another one"
    raises(InvalidCommunicator, own.create_work, 3)
    comm.barrier()


def broken(comm, caller):
    """The work of a broken communicator gives out no more items."""
    work = comm.create_work(5)
    comm.barrier()
    first = met(comm.allreduce, np.ones(3 + comm.rank), np.ones(3 + comm.rank))
    assert isinstance(first, CollectiveFailed), first
    for call in (partial(CLAIM[caller], work), work.reset, work.measured_costs):
        assert "broke in an earlier collective" in str(raises(InvalidCommunicator, call))


def forked(comm, caller, fork):
    """A forked child is no rank: it can claim no item."""
    claim, work = CLAIM[caller], comm.create_work(comm.size)
    claim(work)
    comm.barrier()
    work.reset()
    if comm.rank == 0:
        assert are_refused_in_child(fork, partial(claim, work), work.reset, work.measured_costs)
    seen = np.zeros(comm.size)
    CLAIM_ALL[caller](work, seen, np.zeros(comm.size, np.int64))
    comm.allreduce(seen, seen)
    assert (seen == 1).all()


DIFFERENT = {
    "n": ("rank 1 called create_work of 6", "create_work of 5"),
    **dict.fromkeys(
        ("order", "costs", "works"),
        (
            "ranks disagree (of which work, to which order or costs)",
            "rank 1 called reset otherwise",
        ),
    ),
    "rounds": ("rank 1 called barrier", "called reset"),
    "call": ("rank 1 called reset", "called measured_costs"),
}


def disagree(comm, what):
    """Rank 1 calls something other than the other ranks."""
    is_odd = comm.rank == 1
    if what == "n":
        return met(comm.create_work, 6 if is_odd else 5)
    works = [comm.create_work(5) for _ in range(3)]
    work = works[2]
    if what == "order":
        return met(work.reset, order=[4, 3, 2, 1, 0] if is_odd else [4, 3, 2, 0, 1])
    if what == "costs":
        return met(work.reset, costs=[1.0] * 5 if is_odd else [2.0] * 5)
    if what == "works":
        return met(works[1 if is_odd else 2].reset)
    if what == "rounds":
        return met(comm.barrier if is_odd else work.reset)
    return met(work.reset if is_odd else work.measured_costs)


def learn_who_differs(ran):
    [what] = ran.cell.arguments
    for rank, error in enumerate(ran.values):
        assert isinstance(error, CollectiveFailed), f"rank {rank}: {error!r}"
        assert all(word in str(error) for word in DIFFERENT[what]), f"rank {rank}: {error}"
        assert error.ranks == (1,), error.ranks


def live_on(comm, caller):
    """A claim works though no variable holds the communicator or the region of the work."""
    work = comm.split(0).create_work(4)
    times = np.zeros(4)
    CLAIM_ALL[caller](work, times, np.zeros(4, np.int64))
    comm.allreduce(times, times)
    assert (times == 1).all()


case = partial(Case, callers=BOTH, needs=("work",), column="regions")
SPLIT, ODD = ("work", "split"), ("work", "disagreement")
CASES = [
    case(
        "every_item_once", claim_rounds, {"count": [Together(COUNTS)]}, callers=EVERY,
        expect=have_the_digest_of_equal_shares, check=QUICK,
    ),
    case("shares", shares, {"count": [1000]}, callers=(), expect=are_in_proportion),
    case("late_reset", late_reset, {"count": [40]}, callers=EVERY),
    case("contended", contend, {"count": [200_000]}, callers=EVERY),
    case("threads", claim_in_threads, {"count": [5000]}),
    case("reset_beside_claims", reset_beside_claims),
    case("costs", costs),
    case("bad_arguments", bad_arguments, callers=(), where="arguments"),
    case("closed", closed, needs=SPLIT),
    case("outlives_names", live_on, needs=SPLIT),
    case("broken", broken, needs=ODD, sizes=(3,), fresh=True, check=NEVER),
    case("forked", forked, {"fork": [*FORKS]}, needs=("work", "forks"), check=NEVER),
    case(
        "disagreement", disagree, {"what": [*DIFFERENT]}, callers=(), needs=ODD, sizes=(3,),
        limit_s=10, fresh=True, expect=learn_who_differs, check=NEVER,
    ),
]  # fmt: skip
