"""Phases: time counts for the innermost phase; when that ends, the phase around it continues."""

import csv
import pathlib
import sys
import threading
import time
from functools import partial
from importlib.util import find_spec
from unittest import mock

import numpy as np

from cobre_comm import CollectiveFailed, InvalidCommunicator
from cobre_comm.testing.cases.calls import by_caller, calls, chosen
from cobre_comm.testing.cases.case import EVERY, NEVER, QUICK, Case
from cobre_comm.testing.cases.faults.calling import FORKS, are_refused_in_child
from cobre_comm.testing.cases.raised import met, raises
from cobre_comm.testing.cases.stats import come
from cobre_comm.testing.cases.waiting import wait_until

PAUSE_S = 0.02
AWAITED = 3  # the collectives in which one rank is last
LONGEST = "ä" * 24  # 48 bytes


def _enter(comm, number):
    return comm.enter_phase(number)


def _nested(comm, outer, inner, values):
    """Call exact_sum once in the outer phase, twice in the inner, and once more in the outer."""
    before = comm.enter_phase(outer)
    comm.exact_sum(values)
    held = comm.enter_phase(inner)
    comm.exact_sum(values)
    comm.exact_sum(values)
    left = comm.enter_phase(held)
    comm.exact_sum(values)
    comm.enter_phase(before)
    return before, held, left


def _fail_inside(comm, number):
    comm.enter_phase(number)
    raise ValueError("inside")


ENTER, NESTED, FAIL_INSIDE = map(by_caller, (_enter, _nested, _fail_inside))


def counts(stats):
    """Return, by phase, how often it was entered and how many collectives it has."""
    return {name: (p.entered, p.collectives.calls) for name, p in stats.phases.items()}


def nested(comm, caller):
    """The inner phase gets its own collectives; all phases together get all of the time."""
    caller, values = chosen(caller, comm.rank), np.ones(3)
    NESTED[caller](comm, 0, 0, values)  # compiles
    assert comm.stats().phases == {}
    began = time.perf_counter()
    outer, inner = comm.phase_number("outer"), comm.phase_number("inner")
    first = time.perf_counter()
    assert NESTED[caller](comm, outer, inner, values) == (0, outer, inner)
    last = time.perf_counter()
    stats = comm.stats()
    ended = time.perf_counter()
    assert counts(stats) == {"outer": (2, 2), "inner": (1, 2), "outside": (2, 0)}, stats
    total_s = sum(phase.total_s for phase in stats.phases.values())
    assert 0.9 * (last - first) <= total_s <= 1.1 * (ended - began) + 1e-4, (total_s, stats)
    for phase in stats.phases.values():
        assert min(phase.computing_s, phase.waiting_s, phase.transferring_s) >= 0.0
    assert stats["exact_sum"].calls == 8
    assert "inner" in repr(stats)


def with_blocks(comm, caller):
    """A block may be inside a block of the same phase; an exception restores the outer phase."""
    fail_inside, values = FAIL_INSIDE[caller], np.ones(3)
    again = comm.phase("again")
    with again, again:
        assert comm.enter_phase(comm.phase_number("again")) == comm.phase_number("again")
    assert comm.enter_phase(0) == 0
    with comm.phase("outer"):
        for _ in range(2):
            error = met(_leave_by_an_exception, comm, fail_inside)
            assert (type(error), error.args) == (ValueError, ("inside",))
        assert comm.enter_phase(comm.phase_number("outer")) == comm.phase_number("outer")
        comm.exact_sum(values)
    assert comm.enter_phase(0) == 0
    found = counts(comm.stats())
    assert found["outer"][1] == 1
    assert found["inner"] == (2, 2)


def _leave_by_an_exception(comm, fail_inside):
    with comm.phase("inner"):
        comm.exact_sum(np.ones(3))
        fail_inside(comm, comm.phase_number("deeper"))


def one_comes_last(comm, caller, late, folder):
    """One rank computes in a phase, and the others wait for that rank in the same phase."""
    comm.exact_sum(np.ones(3))
    number = comm.phase_number("uneven")
    for step in range(AWAITED):
        outer = ENTER[caller](comm, number)
        come(comm, late % comm.size, pathlib.Path(folder) / str(step))
        comm.exact_sum(np.ones(3))
        ENTER[caller](comm, outer)
        comm.exact_sum(np.ones(3))
    return comm.stats()


def waits_are_in_the_phase(ran):
    late = ran.cell.arguments[0] % ran.size
    for rank, stats in enumerate(ran.values):
        uneven = stats.phases["uneven"]
        assert uneven.collectives.calls == AWAITED
        assert counts(stats)["outside"][1] == AWAITED
        if rank == late:
            assert uneven.computing_s >= AWAITED * PAUSE_S, stats
        else:
            assert uneven.collectives.came_last[late] == AWAITED, stats
            assert uneven.collectives.waited_for_s[late] > AWAITED * PAUSE_S / 2, stats
            assert uneven.collectives.waited_for_s[late] <= uneven.waiting_s + 1e-6
            assert f" of {AWAITED} calls of phase uneven" in repr(stats)


def names_and_numbers(comm, caller):
    """Each name has one number; anything that is no name or no number is refused in a sentence."""
    enter = ENTER[caller]
    assert [comm.phase_number(name) for name in ("a", LONGEST, "a")] == [1, 2, 1]
    for name, error, words in [
        ("", ValueError, "must be printable"),
        ("  ", ValueError, "must be printable"),
        ("two\nlines", ValueError, "must be printable"),
        ("\ud800", ValueError, "must be printable"),
        ("x" + LONGEST, ValueError, "at most 48 bytes, got 49"),
        ("outside", ValueError, "a row of its own"),
        ("library", ValueError, "a row of its own"),
        (b"a", TypeError, "must be a str, got bytes"),
        (1, TypeError, "must be a str, got int"),
    ]:
        for call in (comm.phase_number, comm.phase):
            told = str(raises(error, call, name))
            assert words in told, told
    for number in (3, -1, 31, 2**63 - 1, np.uint64(2**63)):
        told = str(raises(ValueError, enter, comm, number))
        assert told == "enter_phase: number must be 0, or what comm.phase_number(name) has returned"
    for number in (1.5, True, "a"):
        told = str(raises(TypeError, enter, comm, number))
        assert told.startswith("enter_phase: number must be an integer, got "), told
    assert enter(comm, np.int8(2)) == 0
    assert enter(comm, np.uint64(1)) == 2
    assert enter(comm, 0) == 1
    for number in range(3, 31):
        assert comm.phase_number(f"phase {number}") == number
    told = str(raises(ValueError, comm.phase_number, "one more"))
    assert told == "a communicator has at most 30 phases, and 'one more' would be one more"
    assert enter(comm, 30) == 0
    assert enter(comm, 0) == 30
    comm.barrier()
    assert list(comm.stats().phases) == ["a", LONGEST, "phase 30", "outside"]


def closed(comm, caller):
    """A closed communicator enters no phase; a block in which it is closed ends silently."""
    own = comm.split(0)
    with own.phase("end"):
        own.barrier()
        own.close()
    for call in (own.phase, own.phase_number):
        assert "closed" in str(raises(InvalidCommunicator, call, "end"))
    for number in (0, 1, 99):
        told = str(raises(InvalidCommunicator, ENTER[caller], own, number))
        assert told == "this communicator is closed; create another one"
    comm.barrier()


def broken(comm, caller):
    """A failed collective's wait counts in its phase; a broken communicator has phases too."""
    with comm.phase("before"):
        comm.exact_sum(np.ones(3))
    error = met(_fail_together, comm)
    assert isinstance(error, CollectiveFailed), error
    after = comm.phase_number("after")
    assert ENTER[caller](comm, after) == 0
    time.sleep(PAUSE_S)
    assert ENTER[caller](comm, 0) == after
    phases = comm.stats().phases
    assert counts(comm.stats())["wrong"] == (1, 0)
    assert 0.0 < phases["wrong"].waiting_s <= phases["wrong"].total_s
    assert phases["after"].computing_s >= PAUSE_S


def _fail_together(comm):
    with comm.phase("wrong"):
        comm.allreduce(np.ones(3 + comm.rank), np.ones(3 + comm.rank))


def own_calls(comm):
    """Collectives that the library makes for its own use count in no phase of the program."""
    with comm.phase("splits"):
        comm.split(0).close()
        comm.exact_sum(np.ones(3))
        assert comm.enter_phase(comm.phase_number("splits")) == comm.phase_number("splits")
    found = counts(comm.stats())
    assert found["splits"][1] == 2, found  # the split, and the sum
    assert found["library"][0] == 1, found
    assert found["library"][1] == comm.stats()["library"].calls > 0


def files(comm, folder):
    """A file of phases has the same numbers as the statistics."""
    with comm.phase('a "quoted", name'):
        comm.exact_sum(np.ones(3))
    stats, path = comm.stats(), pathlib.Path(folder) / f"{comm.rank}.csv"
    stats.to_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = {(row["kind"], row["name"]): row for row in csv.DictReader(file)}
    parts = [("operation", stats.operations), ("phase", stats.phases)]
    assert list(rows) == [(kind, name) for kind, part in parts for name in part]
    phase = stats.phases['a "quoted", name']
    row = rows["phase", 'a "quoted", name']
    assert (row["rank"], row["size"]) == (str(comm.rank), str(comm.size))
    assert (float(row["computing_s"]), float(row["waiting_s"])) == (
        phase.computing_s,
        phase.waiting_s,
    )
    assert (row["entered"], row["calls"], row["bytes"]) == ("1", "1", str(phase.collectives.nbytes))
    assert rows["operation", "exact_sum"]["computing_s"] == ""
    with mock.patch.dict(sys.modules, pyarrow=None):
        told = str(raises(ModuleNotFoundError, stats.to_parquet, path))
    assert "pip install pyarrow" in told, told
    if find_spec("pyarrow") is None:
        return
    from pyarrow import parquet

    stats.to_parquet(path.with_suffix(".parquet"))
    table = parquet.read_table(path.with_suffix(".parquet"))
    assert table.column_names == list(row)
    for one, other in zip(table.to_pylist(), rows.values(), strict=True):
        assert {k: "" if v is None else str(v) for k, v in one.items()} == other


def another_thread(comm, caller, folder):
    """While another thread of a rank is inside a collective, entering a phase is an error.

    Calls that need no other rank still work.
    """
    enter, number, go = ENTER[caller], comm.phase_number("a"), pathlib.Path(folder) / "go"
    enter(comm, number)
    if comm.rank == 0:
        thread = threading.Thread(target=comm.barrier)
        thread.start()
        error = wait_until(lambda: met(enter, comm, number))
        made = calls(caller, comm.rank)
        answers = made.share(comm, 10), made.stop_requested(comm)
        go.touch()
        thread.join()
        assert isinstance(error, InvalidCommunicator), error
        assert str(error).startswith("enter_phase: another thread is inside a collective"), error
        assert answers == ((0, 5), False)
    else:
        wait_until(go.exists)
        comm.barrier()
    assert enter(comm, 0) == number


def forked(comm, caller, fork):
    """A forked child is no rank: it can enter no phase, and does not change its parent's phase."""
    enter, number = ENTER[caller], comm.phase_number("parent")
    enter(comm, 0)
    with comm.phase("parent"):
        comm.barrier()
        if comm.rank == 0:
            tried = (
                partial(enter, comm, number),
                partial(comm.phase, "child"),
                partial(_leave, comm),
            )
            assert are_refused_in_child(fork, *tried)
        assert enter(comm, number) == number
    assert enter(comm, 0) == 0


def _leave(comm):
    comm.phase("parent").__enter__()


CASES = [
    Case(
        "nested", nested, callers=EVERY, needs=("phases",), fresh=True, check=QUICK,
    ),
    Case("with_blocks", with_blocks, needs=("phases",), fresh=True),
    Case(
        "one_comes_last", one_comes_last, {"late": [0, -1]}, expect=waits_are_in_the_phase,
        needs=("phases",), fresh=True, folder=True, tries=3,
    ),
    Case(
        "names_and_numbers", names_and_numbers, needs=("phases",), where="arguments",
        fresh=True,
    ),
    Case("closed", closed, needs=("phases", "split"), where="typed", check=NEVER),
    Case(
        "broken", broken, needs=("phases", "disagreement"), sizes=(3,), limit_s=10, fresh=True,
        check=NEVER,
    ),
    Case(
        "own_calls", own_calls, callers=(), needs=("phases", "split"), sizes=(2, 3), fresh=True,
    ),
    Case(
        "files", files, callers=(), needs=("phases",), where="typed", fresh=True, folder=True,
    ),
    Case(
        "another_thread", another_thread, needs=("phases", "threads"), sizes=(2,), fresh=True,
        folder=True, check=NEVER,
    ),
    Case(
        "forked", forked, {"fork": [*FORKS]}, needs=("phases", "forks"), fresh=True,
        check=NEVER,
    ),
]  # fmt: skip
