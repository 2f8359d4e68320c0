"""The searches of ``check.py``: every model as it is, and with each planted fault."""

from __future__ import annotations

import dataclasses

CLEAN = "clean"  # the code as it is: an exhaustive search finds no error
FAULT = "fault"  # one mistake is planted: the search finds the error that is expected


@dataclasses.dataclass(frozen=True)
class Case:
    """One search.

    Attributes
    ----------
    model : str
        The file, without ``.pml``.
    name : str
        The variant of the model, or the fault.
    kind : str
        CLEAN or FAULT.
    ranks : int
        Number of ranks.
    switches : tuple of str
        The definitions for the model, each ``NAME`` or ``NAME=value``.
    error : str
        Part of the error that a search must find, or two parts with "or" between them; empty for
        a clean model.
    """

    model: str
    name: str
    kind: str
    ranks: int
    switches: tuple[str, ...] = ()
    error: str = ""


HANGS = "invalid end state"
TORN = "slot["
WAITS_FOR_EVER = "outcome[its]!="
ASLEEP = "sleeps_on[its]=="
SECOND_JOB_FAILS = "job==1"
TWICE = "!(given["
TWO_ROLLS = "agreed["
TWO_GROUPS = "taken["
TWICE_OR_LOST = f"{TWICE} or item!=254"

# The model, the variant, the number of ranks, the switches.
_CLEAN = (
    ("step", "", 2, ()),
    ("step", "", 3, ()),
    ("step", "casts", 3, ("CASTS",)),
    ("stripes", "", 2, ()),
    ("stripes", "", 3, ()),
    ("wake", "", 2, ()),
    ("wake", "", 3, ()),
    ("death", "no deadline", 2, ("EVENTS=2",)),
    ("death", "no deadline", 3, ("EVENTS=2",)),
    ("death", "deadline", 2, ("EVENTS=2", "DEADLINE")),
    ("death", "deadline", 3, ("EVENTS=2", "DEADLINE")),
    ("attach", "no deadline", 2, ("DEATHS=2",)),
    ("attach", "no deadline", 3, ("DEATHS=2",)),
    ("attach", "deadline", 2, ("DEATHS=2", "DEADLINE")),
    ("attach", "deadline", 3, ("DEATHS=2", "DEADLINE")),
    ("leaders", "data that can be left", 2, ()),
    ("leaders", "data that can be left", 3, ()),
    ("leaders", "data that cannot", 2, ("BOUND",)),
    ("leaders", "data that cannot", 3, ("BOUND",)),
    ("work", "one thread a rank", 2, ()),
    ("work", "one thread a rank", 3, ("ROUNDS=2",)),
    ("work", "two threads", 2, ("THREAD=2",)),
    ("work", "two threads", 3, ("ROUNDS=2", "THREAD=1")),
    ("roll", "no deadline", 2, ("EVENTS=2",)),
    ("roll", "no deadline", 3, ("EVENTS=2", "MAKES=1")),
    ("roll", "deadline", 2, ("EVENTS=2", "DEADLINE")),
    ("roll", "deadline", 3, ("EVENTS=1", "MAKES=1", "DEADLINE")),
    ("chair", "deaths", 2, ("EVENTS=2",)),
    ("chair", "deaths", 3, ("EVENTS=2",)),
    ("chair", "deaths", 4, ("EVENTS=2",)),
    ("chair", "two parts", 2, ("EVENTS=1", "CUT")),
    ("chair", "two parts", 3, ("EVENTS=1", "CUT")),
    ("chair", "deadline", 2, ("EVENTS=2", "DEADLINE")),
    ("chair", "deadline", 3, ("EVENTS=2", "DEADLINE")),
)

# The model, the fault, the error that the search must find, further switches.
_FAULTS = (
    ("step", "SKIP_ONE", "entered[other]>=g", ()),
    ("step", "ONE_SLOT", TORN, ()),
    ("step", "ONE_WORD", HANGS, ()),
    ("step", "TOGGLE", HANGS, ()),
    ("step", "MODULO_2", TORN, ()),
    ("step", "AHEAD", TORN, ()),
    ("step", "LATE_READ", TORN, ()),
    ("step", "OWN_SLOT", TORN, ()),
    ("step", "EXCHANGE_ALL", TORN, ()),
    ("step", "CAST_BOTH", TORN, ("CASTS",)),
    ("step", "RELAXED_STORE", TORN, ()),
    ("step", "NO_ACQUIRE", "early==g", ()),
    ("stripes", "ONE_STRIPE", "stripe[", ()),
    ("stripes", "FOLD_IN_PLACE", TORN, ()),
    ("stripes", "TAKE_OUT_EARLY", "stripe[", ()),
    ("stripes", "SAME_STEP", "stripe[", ()),
    ("stripes", "RELAXED_STORE", "stripe[", ()),
    ("wake", "NO_WAKE", ASLEEP, ()),
    ("wake", "WAKE_ONE", ASLEEP, ()),
    ("wake", "OTHER_WORD", ASLEEP, ()),
    ("wake", "NO_SLEEPERS", ASLEEP, ()),
    ("wake", "LATE_SLEEPERS", ASLEEP, ()),
    ("wake", "LOOK_FIRST", ASLEEP, ()),
    ("wake", "RELEASE_STORE", ASLEEP, ()),
    ("wake", "NO_COMPARE", ASLEEP, ()),
    ("death", "NO_LOOK", WAITS_FOR_EVER, ()),
    ("death", "NO_LOCK", WAITS_FOR_EVER, ()),
    ("death", "NO_CONDITION", WAITS_FOR_EVER, ()),
    ("death", "SILENT", WAITS_FOR_EVER, ()),
    ("death", "NO_DEADLINE", WAITS_FOR_EVER, ("DEADLINE",)),
    ("death", "NO_SECOND_LOOK", "!((arrived[", ()),
    ("death", "NO_AGREEMENT", "signature[", ()),
    ("death", "ONE_REASON", "why!=", ()),
    ("attach", "NO_UNLINK", "name==", ()),
    ("attach", "READY_FIRST", "ready[0]&&(name==0)", ()),
    ("attach", "PUBLISH_EARLY", "header[segment]", ()),
    ("attach", "LATE_LOCK", "trouble or job==1", ()),
    ("attach", "NO_LOOK", "ending[0]==", ()),
    ("attach", "NO_SECOND_LOOK", "!(ready[segment])", ()),
    ("attach", "KEEP_STALE", SECOND_JOB_FAILS, ()),
    ("attach", "NO_EXCL", SECOND_JOB_FAILS, ()),
    ("attach", "ANY_OWNER", SECOND_JOB_FAILS, ()),
    ("attach", "EMPTY_IS_FOREIGN", SECOND_JOB_FAILS, ("DEADLINE",)),
    ("attach", "KEEPS_LOCK", "ending[0]==", ()),
    ("leaders", "NO_COMMIT", WAITS_FOR_EVER, ("BOUND",)),
    ("leaders", "STAY_PREPARED", WAITS_FOR_EVER, ("BOUND",)),
    ("leaders", "SILENT", WAITS_FOR_EVER, ("BOUND",)),
    ("leaders", "ALL_FRESH", "lost_at[", ()),
    ("work", "LOAD_AND_STORE", TWICE, ()),
    ("work", "ONE_COUNT", TWICE_OR_LOST, ()),
    ("work", "NO_BARRIER", TWICE_OR_LOST, ()),
    ("work", "ZERO_LATE", TWICE_OR_LOST, ()),
    ("work", "NO_SECOND_LOOK", TWICE, ("THREAD=1",)),
    ("work", "STAYS_OPEN", TWICE, ("THREAD=1",)),
    ("roll", "PLAIN_STORE", TWO_ROLLS, ("DEADLINE",)),
    ("roll", "OWN_ROLL", TWO_ROLLS, ("DEADLINE",)),
    ("roll", "OWN_CALL", f"{TWO_ROLLS} or roll[", ("DEADLINE",)),
    ("roll", "ANSWERED_FIRST", "lock[other]", ()),
    ("roll", "TURN_FIRST", "row[", ()),
    ("roll", "ONE_ROW", "row[", ()),
    ("roll", "ONE_ROLL", f"{TWO_ROLLS} or roll[", ("DEADLINE",)),
    ("roll", "NO_LOCK", WAITS_FOR_EVER, ()),
    ("roll", "NO_AWAY", WAITS_FOR_EVER, ()),
    ("roll", "LATE_FIRST", "members& ~(who)", ("DEADLINE",)),
    ("roll", "TIME_ALONE", "returned==0", ("DEADLINE",)),
    ("chair", "NO_HELD", TWO_GROUPS, ()),
    ("chair", "OPEN_PORT", WAITS_FOR_EVER, ()),
    ("chair", "NOT_AGAIN", WAITS_FOR_EVER, ()),
    ("chair", "NEW_ROLL", TWO_GROUPS, ("CUT",)),
    ("chair", "ANY_PART", TWO_GROUPS, ("CUT",)),
    ("chair", "ANY_HALF", TWO_GROUPS, ("CUT",)),
    ("chair", "CLOSES_PORT", TWO_GROUPS, ("CUT",)),
    ("chair", "BEHIND_GOES_ON", TWO_GROUPS, ("CUT",)),
    ("chair", "WITHOUT_ITSELF", "roll&(1<<me)", ("CUT",)),
)
_NEEDS_THREE_RANKS = {
    ("wake", "WAKE_ONE"),
    ("attach", "KEEPS_LOCK"),
    ("step", "EXCHANGE_ALL"),
    ("step", "CAST_BOTH"),
    ("chair", "NOT_AGAIN"),
    ("chair", "NEW_ROLL"),
    ("chair", "BEHIND_GOES_ON"),
}
_NEEDS_TWO_RANKS = {("step", "OWN_SLOT"), ("chair", "ANY_HALF")}
_MISHAPS = {"death": ("EVENTS=1",), "roll": ("EVENTS=1", "MAKES=1"), "chair": ("EVENTS=1",)}


def all_cases() -> list[Case]:
    """Return every case; the clean models come first."""
    cases = [Case(m, name or "as it is", CLEAN, r, sw) for m, name, r, sw in _CLEAN]
    for model, name, error, further in _FAULTS:
        few = 3 if (model, name) in _NEEDS_THREE_RANKS else 2
        most = 2 if (model, name) in _NEEDS_TWO_RANKS else 3
        for ranks in range(few, most + 1):
            switches = ("FAULT_" + name, *_MISHAPS.get(model, ()), *further)
            cases.append(Case(model, name, FAULT, ranks, switches, error))
    return cases
