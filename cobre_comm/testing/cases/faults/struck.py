"""Faults at some moment of a sequence of collectives, as rows of the table."""

from dataclasses import replace

from cobre_comm.testing.cases.case import NEVER, QUICK, Case, Slow
from cobre_comm.testing.cases.faults.fault import REGION, SPLIT, STEP, Fault
from cobre_comm.testing.cases.faults.judge import Judge, Seen
from cobre_comm.testing.cases.faults.survivors import SLACK_S
from cobre_comm.testing.cases.faults.work import Worker

LIMIT_S = 0.5


def struck(comm, caller, fault, folder):
    """Work until the fault has struck; return this rank's account."""
    return Worker(comm, caller, complete(fault, comm.size), folder, comm.rank).account()


def complete(fault, size, **changes):
    return replace(fault, size=size, victim=fault.victim % size, **changes)


def codes_of(outcomes):
    """Return the exit codes of ranks, as if each body had been a program of its own."""
    return tuple(o.exit_code if o.ended else int(o.exception is not None) for o in outcomes)


def check(fault, outcomes, variable=""):
    """Judge the outcomes of a pool's ranks; raise if the judge finds a problem."""
    accounts = [outcome.value if outcome.ok else {} for outcome in outcomes]
    struck_at = [each["struck_by"] for each in accounts if each.get("struck_by")]
    if struck_at:
        accounts[fault.victim].setdefault("struck", struck_at[0])
    seen = Seen(
        exit_codes=codes_of(outcomes),
        margin_s=SLACK_S,
        overdue=any(outcome.timed_out for outcome in outcomes),
        timeout_variable=variable,
    )
    problems = Judge(fault, accounts, seen).verdict().problems
    told = [outcome.describe() for outcome in outcomes if not outcome.ok]
    assert not problems, "\n".join([str(fault), *problems, *told])


def all_is_as_it_must_be(ran):
    [fault] = ran.cell.arguments
    fault = complete(fault, ran.size, backend=ran.backend)
    check(fault, ran.outcomes, ran.settings.timeout_variable(ran.backend))


def at(kind, victim=0, moment=STEP, **fields):
    seed = sum(map(ord, f"{kind} {victim} {moment}"))
    return Fault(kind, victim, 0, moment=moment, seed=seed, delay_s=seed % 10 / 2000, **fields)


def case(name, faults, needs, **fields):
    fields = {"where": "points", "sizes": (3,), "check": NEVER, **fields}
    return Case(
        name, struck, {"fault": faults}, needs=needs, fresh=True, folder=True, column="killed",
        expect=all_is_as_it_must_be, **fields,
    )  # fmt: skip


def slow(kind, *victims, **fields):
    return [Slow(at(kind, victim, **fields)) for victim in victims]


ENDS = ("terminated", "crashed", "exit_0", "exit_code", "exit_in_handler", "orphan")
CASES = [
    case(
        "killed",
        [at("killed", 0), at("killed", -1), *slow("killed", 1), *slow("killed", 2, moment=REGION)],
        ("liveness", "regions"), where="watchful",
    ),
    case(
        "named_by_the_others_which_wait", [at("killed", -1)], ("liveness", "regions"),
        where="watchful", callers=("njit",), check=QUICK,
    ),
    case(
        "ended",
        [at("exit_at_once", 1), at("orphan_of_libc", 1), *(Slow(at(kind, 1)) for kind in ENDS)],
        ("liveness", "regions", "forks"), where="watchful",
    ),
    case("closed", [at("closed", 0), *slow("closed", 2)], ("regions",)),
    case(
        "stopped", [at("stopped", 0, limit_s=LIMIT_S)], ("timeouts", "regions"),
        limit_s=LIMIT_S, where="watchful",
    ),
    case(
        "interrupted",
        [at("interrupted", 0), at("alarmed", 1), *slow("interrupted", 1, moment=REGION)],
        ("signals", "regions"),
    ),
    case(
        "killed_in_a_split", [at("killed", 0, SPLIT), *slow("killed", 1, 2, moment=SPLIT)],
        ("liveness", "regions", "split"), where="watchful",
    ),
    case(
        "interrupted_in_a_split", [at("interrupted", 2, SPLIT), *slow("alarmed", 0, moment=SPLIT)],
        ("signals", "regions", "split"),
    ),
    case(
        "late_for_a_split", [at("late", 1, SPLIT, limit_s=LIMIT_S)],
        ("timeouts", "regions", "split"), limit_s=LIMIT_S,
    ),
    case("disturbed", [at("signals", 0), at("children", 1)], ("signals", "forks", "regions")),
    case(
        "refused",
        [at("second_thread", 1), at("use_in_child", 0), at("use_in_child_of_libc", 2)],
        ("threads", "forks", "regions", "split"),
    ),
    case(
        "forked_in_a_handler", [at("fork_in_handler", 1), at("fork_of_libc_in_handler", 0)],
        ("signals", "forks", "regions"),
    ),
]  # fmt: skip
