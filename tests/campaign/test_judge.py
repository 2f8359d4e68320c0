import copy
from dataclasses import replace

import pytest

from cobre_comm.testing.cases.faults.fault import CLOSE, START, Fault
from cobre_comm.testing.cases.faults.judge import Seen
from cobre_comm.testing.cases.faults.kinds import KINDS, LATE, LOST, REFUSED
from tests.campaign.judge import judge
from tests.campaign.kinds import ASTRAY

VICTIM, SIZE = 1, 3
STRUCK, AT = 100.0, 100.2
LATER = ["InvalidCommunicator: this communicator broke"] * 4
VARIABLE = "COBRE_SHM_TIMEOUT_SECS"


def caught(error="CollectiveFailed", ranks=(VICTIM,), **changes):
    text = f"allreduce failed: rank {VICTIM} died; {VARIABLE}"
    facts = {"error": error, "operation": "allreduce", "ranks": list(ranks), "text": text,
             "at": AT, "entered": 99.9, "step": 3}  # fmt: skip
    return {"caught": {**facts, **changes}, "later": LATER, "took": 0.1}


def right(kind):
    """Return a fault, accounts without a problem, and the other facts about the job."""
    fault = Fault(kind, VICTIM, SIZE, limit_s=0.5)
    promise, exit_code = KINDS[kind].promise, KINDS[kind].exit_code
    accounts = [{"pid": 1, "met": 99.0, "left": [], "done": 103.0} for _ in range(SIZE)]
    accounts[VICTIM]["struck"] = STRUCK
    if promise in (LOST, "interrupted", LATE, ASTRAY):
        for rank in {*range(SIZE)} - {VICTIM}:
            accounts[rank] |= caught(at=STRUCK + 0.55 if promise == LATE else AT)
    if promise == "interrupted":
        accounts[VICTIM] |= caught(KINDS[kind].meets, ())
    if promise in (ASTRAY, LATE):
        accounts[VICTIM] |= caught()
    if promise == REFUSED:
        word = "another thread" if kind == "second_thread" else "after a fork"
        accounts[VICTIM]["refused"] = [word] * (7 if kind.startswith("use_in_child") else 1)
    if promise == LOST and kind != "closed":
        del accounts[VICTIM]["done"]
    codes = [exit_code if rank == VICTIM else 0 for rank in range(SIZE)]
    launcher = None
    if kind.startswith("launcher"):
        fault = replace(fault, start="run")
        launcher = {"launcher_killed": -9, "launcher_terminated": 143,
                    "launcher_interrupted": 130}.get(kind, 0)  # fmt: skip
    told = ""
    if kind == "full_stdout":
        fault, launcher = replace(fault, start="run"), 1
        told = "cobre-comm: stdout is incomplete: No space left on device"
    if kind == "killed_early":
        fault, launcher = replace(fault, start="run", moment=START), 137
        told = f"cobre-comm: rank {VICTIM} was ended by signal 9 (SIGKILL)"
    return (
        fault,
        accounts,
        Seen(tuple(codes), 0.5, launcher=launcher, launcher_text=told, timeout_variable=VARIABLE),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_right_accounts_pass(kind):
    verdict = judge(*right(kind))
    assert verdict.problems == []
    assert (KINDS[kind].promise in (LOST, "interrupted", ASTRAY)) == bool(verdict.times)


def of(rank, **facts):
    return lambda accounts, seen: (accounts[rank].update(facts), seen)[1]


def other(**changes):
    return lambda accounts, seen: (accounts[2]["caught"].update(changes), seen)[1]


def without(rank, *names):
    return lambda accounts, seen: ([accounts[rank].pop(name) for name in names], seen)[1]


def around(**changes):
    return lambda accounts, seen: replace(seen, **changes)


EVERY = {
    "a name is left": around(names=("cobre-1.0",)),
    "a process is left": around(processes=("17 python",)),
    "a rank is busy at the deadline": around(overdue=True),
    "a descriptor is left": of(0, left=["7 socket:[1]"]),
    "wrong data": of(0, **caught("Wrong", ())),
}
LEARN = {
    "a survivor learns nothing": without(2, "caught"),
    "a survivor names another": other(ranks=[0]),
    "a survivor names too many": other(ranks=[0, VICTIM]),
    "the sentence names no rank": other(text="something failed"),
    "another error": other(error="InvalidCommunicator"),
    "it did not start, long after it had": other(error="InitializationFailed"),
    "too late": other(at=STRUCK + 2.0),
    "a survivor crashes": lambda a, seen: replace(seen, exit_codes=(-11, *seen.exit_codes[1:])),
    "a survivor gives no account": without(0, "done"),
    "later collectives hang": of(2, took=3.0),
    "a later collective works": of(2, later=LATER[:3]),
    "a later one fails in another way": of(2, later=["CollectiveFailed: again", *LATER[1:]]),
}
CALM = {
    "a rank meets an error": of(2, **caught()),
    "a rank gives no account": without(0, "done"),
    "a rank crashes": lambda a, seen: replace(seen, exit_codes=(0, 0, -7)),
}
WRONG = {
    "killed": LEARN | {
        "it did not strike": without(VICTIM, "struck"),
        "it lives": lambda a, seen: replace(seen, exit_codes=(0, 0, 0)),
    },
    "exit_code": LEARN, "closed": LEARN, "in_prange": LEARN,
    "interrupted": LEARN | {
        "it goes on": without(VICTIM, "caught"),
        "it is told of a loss": of(VICTIM, **caught()),
        "it waits on": of(VICTIM, **caught("KeyboardInterrupt", (), at=STRUCK + 2.0)),
    },
    "late": {
        "too soon": other(at=STRUCK + 0.2), "too late": other(at=STRUCK + 2.5),
        "it names another": other(ranks=[0]), "no variable": other(text="rank 1 did not come"),
        "the late one goes on": without(VICTIM, "caught"), "not missed": without(2, "caught"),
        "another error": other(error="InvalidCommunicator"),
    },
    "astray_length": {
        "one goes on": without(0, "caught"), "at another step": other(step=4),
        "another is named": other(ranks=[2]), "it learns another thing": other(text="x: rank 1"),
        "the odd one goes on": without(VICTIM, "caught"), "too late": other(at=STRUCK + 2.0),
    },
    "paused": CALM, "signals": CALM, "suspended": CALM,
    "use_in_child": CALM | {
        "the child may": of(VICTIM, refused=["after a fork"] * 5),
        "another reason": of(VICTIM, refused=["closed"] * 6),
        "no word of the child": without(VICTIM, "refused"),
    },
    "tiny_memory": {
        "one alone is refused": of(0, **caught("AllocationFailed", ())),
        "a bus error": lambda a, seen: replace(seen, exit_codes=(0, -7, 0)),
    },
    "launcher_killed": {"it ended otherwise": around(launcher=1)},
    "full_stdout": {
        "no word of it": around(launcher_text="rank 1 failed"), "success": around(launcher=0),
        "a rank gives no account": without(0, "done"),
    },
    "launcher_paused": {"it failed": around(launcher=1), "an error": of(2, **caught())},
}  # fmt: skip
PLANTED = [
    (kind, name, plant)
    for kind, plants in WRONG.items()
    for name, plant in (EVERY | plants).items()
]


@pytest.mark.parametrize(
    ("kind", "plant"), [pytest.param(k, p, id=f"{k}-{name}") for k, name, p in PLANTED]
)
def test_a_wrong_account_is_a_miss(kind, plant):
    fault, accounts, seen = right(kind)
    seen = plant(accounts, seen)
    assert judge(fault, accounts, seen).problems


def test_of_two_victims_either_may_be_named_and_no_other():
    fault, accounts, seen = right("two_killed")
    accounts[2] = {"pid": 1, "met": 99.0, "struck": STRUCK}
    seen = replace(seen, exit_codes=(0, -9, -9))
    assert not judge(fault, accounts, seen).problems
    accounts[0] |= caught(ranks=(2,), text="rank 2 died")
    assert not judge(fault, accounts, seen).problems
    assert judge(fault, accounts, replace(seen, exit_codes=(0, -9, 0))).problems
    accounts[0] |= caught(ranks=(0, 2), text="ranks 0 and 2 died")
    assert judge(fault, accounts, seen).problems


def test_a_rank_that_was_at_the_end_needs_not_learn():
    fault, accounts, seen = right("killed")
    del accounts[2]["caught"]
    assert not judge(replace(fault, moment=CLOSE), accounts, seen).problems
    assert judge(fault, accounts, seen).problems


def test_ranks_that_still_meet_may_be_refused():
    fault, accounts, seen = right("killed")
    accounts[2] = {**copy.deepcopy(accounts[2]), **caught("InitializationFailed", ())}
    del accounts[2]["met"]
    assert not judge(replace(fault, moment=START), accounts, seen).problems
    accounts[2]["caught"]["at"] += 9.0
    assert judge(replace(fault, moment=START), accounts, seen).problems


def test_a_launcher_ends_with_the_code_of_the_culprit():
    fault, accounts, seen = right("killed")
    fault = replace(fault, start="run")
    assert not judge(fault, accounts, replace(seen, launcher=137)).problems
    assert judge(fault, accounts, replace(seen, launcher=1)).problems


@pytest.mark.parametrize("goes_on", [True, False])
def test_who_has_closed_its_descriptors_may_be_taken_for_dead_and_go_on(goes_on):
    fault, accounts, seen = right("descriptors")
    accounts[0] |= caught()
    if not goes_on:
        del accounts[VICTIM]["done"]
    assert (not judge(fault, accounts, seen).problems) == goes_on
