"""What the accounts of a job's ranks must say after a fault. A pure function of what was seen."""

import statistics
from dataclasses import dataclass, field

from cobre_comm.testing.backend_name import BackendName, node_of_ranks
from cobre_comm.testing.cases.calls import OPERATIONS
from cobre_comm.testing.cases.faults.fault import CLOSE, START
from cobre_comm.testing.cases.faults.kinds import KINDS, LATE, LOST

PROMISED_S = 1.0  # from the fault to the error, on a machine that has nothing else to do
# What ends the wait of a victim whose own process goes on.
MEETS = {
    "interrupted": "KeyboardInterrupt",
    "alarmed": "Alarmed",
    "in_prange": "InvalidCommunicator",
}
START_S = 3.0  # how long ranks of a campaign look for each other where one may be lost then


@dataclass(frozen=True)
class Seen:
    """What was seen of a job beside the accounts of its ranks.

    Attributes
    ----------
    exit_codes : tuple
        Of the ranks; None where it was busy at the deadline, or where a launcher alone knows it.
    margin_s : float
        How much later than promised things may be on this machine, now.
    names, processes : tuple of str
        What was left in shared memory, and alive.
    launcher : int or None
        Exit code of the launcher.
    launcher_text : str
        What it wrote.
    """

    exit_codes: tuple = ()
    margin_s: float = 1.0
    names: tuple = ()
    processes: tuple = ()
    launcher: int | None = None
    launcher_text: str = ""
    timeout_variable: str = ""
    overdue: bool = False


@dataclass
class Verdict:
    """What was wrong, and how long the survivors took to know."""

    problems: list = field(default_factory=list)
    times: list = field(default_factory=list)


def judge(fault, accounts, seen):
    """Return a :class:`Verdict`.

    Parameters
    ----------
    fault : Fault
        What befell whom.
    accounts : sequence of dict
        In rank order, as ``fault.told`` returns them.
    seen : Seen
        All else.
    """
    case = _Case(fault, list(accounts), seen)
    case.anything()
    getattr(case, promise_of(fault))()
    return Verdict(case.problems, case.times)


def promise_of(fault):
    """Return what the kind promises; where only MPI connects the victim, a death is lateness."""
    kind, nodes = KINDS[fault.kind], []
    if BackendName.parse(fault.backend).is_mpi:
        nodes = node_of_ranks(fault.backend, fault.size)
    says_goodbye = fault.kind in ("exit_0", "exit_code", "raised", "closed")
    if (
        kind.promise == LOST
        and nodes
        and nodes.count(nodes[fault.victim]) == 1
        and not says_goodbye
    ):
        return LATE
    return kind.promise


class _Case:
    def __init__(self, fault, accounts, seen):
        self.fault, self.accounts, self.seen = fault, accounts, seen
        self.kind = KINDS[fault.kind]
        self.problems, self.times = [], []
        # Of two, the second may learn of the first before it is struck itself.
        struck = {v: accounts[v]["struck"] for v in fault.victims if "struck" in accounts[v]}
        self.victims, self.struck = list(struck), max(struck.values(), default=None)
        self.others = [rank for rank in range(fault.size) if rank not in struck]
        self.is_mpi = BackendName.parse(fault.backend).is_mpi
        self.is_launched = fault.start != "hand"
        self.everyone = range(fault.size)

    def must(self, holds, text):
        if not holds:
            self.problems.append(text)
        return bool(holds)

    # What holds for every fault.
    def anything(self):
        self.must(not self.seen.overdue, "a rank was still busy at the deadline")
        self.must(not self.seen.names, f"left in shared memory: {self.seen.names}")
        self.must(not self.seen.processes, f"left alive: {self.seen.processes}")
        for rank in self.everyone:
            self._account(rank)

    def _account(self, rank):
        told = self.accounts[rank]
        caught = told.get("caught")
        if caught:
            self.must(caught["error"] != "Wrong", f"rank {rank}: wrong data: {caught['text']}")
            self._later(rank, caught, told.get("later"))
        # An MPI opens what it needs when it needs it, and keeps it.
        if "left" in told and self.fault.kind != "descriptors" and not self.is_mpi:
            self.must(not told["left"], f"rank {rank} keeps {told['left']}")

    def _later(self, rank, caught, later):
        """Each later collective failed at once, and named the first cause."""
        if caught["error"] not in ("CollectiveFailed", "InvalidBufferSize") or later is None:
            return
        self.must(
            len(later) == len(OPERATIONS) and all("InvalidCommunicator" in x for x in later),
            f"rank {rank}: later collectives: {later}",
        )
        took = self.accounts[rank]["took"]
        self.must(took < PROMISED_S + self.seen.margin_s, f"rank {rank}: they took {took} s")

    def _must_end(self, rank, code):
        """A rank's process has ended so; of a launched job the launcher alone knows."""
        if not self.is_launched:
            came = self.seen.exit_codes[rank]
            self.must(came == code, f"rank {rank} ended with {came} instead of {code}")
            if code == 0 and self.fault.kind not in ("exit_0", "exec"):
                self.must("done" in self.accounts[rank], f"rank {rank} gives no account")

    # Promises.
    def lost(self):
        if not self.must(self.struck is not None, "the fault did not strike"):
            return
        for victim in self.victims:
            if len(self.victims) == 1 or "caught" not in self.accounts[victim]:
                self._must_end(victim, self.kind.exit_code)
        for rank in self.others:
            self._must_end(rank, 0)
            self._learns_of_victim(rank)
        if self.is_launched:
            self._launcher_says(self.kind.exit_code)

    def interrupted(self):
        victim = self.fault.victim
        expected = MEETS[self.fault.kind]
        caught = self.accounts[victim].get("caught", {})
        if self.must(caught.get("error") == expected, f"the victim met {caught}"):
            self._in_time(victim, caught)
        for rank in self.everyone:
            self._must_end(rank, 0)
        for rank in self.others:
            self._learns_of_victim(rank)

    def _learns_of_victim(self, rank):
        told = self.accounts[rank]
        caught = told.get("caught")
        if caught is None:
            # A launcher may end it first; who was at the end already needed nobody.
            may = self.is_launched or (self.fault.moment == CLOSE and "done" in told)
            self.must(may, f"rank {rank} did not learn that {self.victims} were lost")
        elif caught["error"] == "InitializationFailed" and "met" not in told:
            self.must(self.fault.moment == START, f"rank {rank}: {caught['text']}")
            self.must("rank" in caught["text"], f"rank {rank}: {caught['text']}")
            self._in_time(rank, caught, START_S)
        else:
            named = caught["ranks"]
            right = caught["error"] == "CollectiveFailed" and {*named} <= {*self.victims}
            right = right and named and all(str(victim) in caught["text"] for victim in named)
            self.must(right, f"rank {rank} met {caught['error']} of {caught['ranks']}: "
                             f"{caught['text']}")  # fmt: skip
            self._in_time(rank, caught)

    def _in_time(self, rank, caught, more_s=0.0):
        since = max(self.struck or 0.0, caught["entered"] if more_s == 0.0 else 0.0)
        took = caught["at"] - since
        self.times.append(max(0.0, took))
        limit = PROMISED_S + more_s + self.seen.margin_s
        self.must(took < limit, f"rank {rank} learnt of it after {took:.2f} s, not {limit:.2f}")

    def late(self):
        limit, victim = self.fault.limit_s, self.fault.victim
        self._must_end(victim, self.kind.exit_code)
        for rank in self.others:
            self._must_end(rank, 0)
        for rank in self.others:
            caught = self.accounts[rank].get("caught")
            if caught is None:
                self.must(self.is_launched, f"rank {rank} did not miss rank {victim}")
                continue
            right = caught["error"] == "CollectiveFailed" and caught["ranks"] == [victim]
            right = right and self.seen.timeout_variable in caught["text"]
            self.must(right, f"rank {rank} met {caught['error']}: {caught['text']}")
            waited = caught["at"] - max(caught["entered"], self.struck or 0.0)
            least, most = 0.8 * limit, limit + PROMISED_S + self.seen.margin_s
            self.must(least < waited < most, f"rank {rank} waited {waited:.2f} s, not {limit}")
        lives = self.kind.promise == LATE and not self.is_launched
        self.must(not lives or "caught" in self.accounts[victim], "the late rank met no error")

    def astray(self):
        texts = set()
        for rank in self.everyone:
            self._must_end(rank, 0)
            caught = self.accounts[rank].get("caught")
            if not self.must(caught or self.is_launched, f"rank {rank} met no error") or not caught:
                continue
            right = caught["error"] in ("CollectiveFailed", "InvalidBufferSize")
            right = right and caught["step"] == self.fault.step
            right = right and (self.fault.size == 2 or caught["ranks"] == [self.fault.victim])
            self.must(right, f"rank {rank} met {caught}")
            texts.add(caught["text"].partition(": ")[2])
            self.must(f"rank {self.fault.victim}" in caught["text"], f"who? {caught['text']}")
            self._in_time(rank, caught)
        self.must(len(texts) <= 1, f"ranks are told different things: {texts}")

    def nothing(self):
        for rank in self.everyone:
            self._must_end(rank, 0)
            told = self.accounts[rank]
            self.must("caught" not in told, f"rank {rank} met {told.get('caught')}")
            self.must("done" in told, f"rank {rank} gives no account")
        if self.is_launched:
            self.must(self.seen.launcher == 0, f"the launcher ended with {self.seen.launcher}")

    def unsaid(self):
        for rank in self.everyone:
            self.must("done" in self.accounts[rank], f"rank {rank} gives no account")
        self.must(self.seen.launcher == 1, f"the launcher ended with {self.seen.launcher}")
        says = "No space left on device" in self.seen.launcher_text
        self.must(says, f"the launcher says {self.seen.launcher_text!r}")

    def planted(self):
        for rank in self.everyone:
            self._must_end(rank, 0)
            caught = self.accounts[rank].get("caught")
            if caught is None:
                self.must("done" in self.accounts[rank], f"rank {rank} gives no account")
                continue
            right = caught["error"] == "InitializationFailed" and "rank" in caught["text"]
            self.must(right, f"rank {rank} met {caught}")
            took = caught["at"] - caught["entered"]
            limit = PROMISED_S + START_S + self.seen.margin_s
            self.must(took < limit, f"rank {rank} looked for {took:.2f} s, not {limit:.2f}")

    def refused(self):
        self.nothing()
        told = self.accounts[self.fault.victim].get("refused", [])
        word = "thread" if self.fault.kind == "second_thread" else "fork"
        count = len(OPERATIONS) + 3 if self.fault.kind.startswith("use_in_child") else 1
        right = len(told) == count and all(word in text for text in told)
        self.must(right, f"the other is told {told}")

    def short(self):
        """All went well, or all are refused alike, or the victim failed and the others name it."""
        met = [told.get("caught", {}).get("error") for told in self.accounts]
        for rank in self.everyone:
            self._must_end(rank, 0)
        alike = {"AllocationFailed"}, {"InitializationFailed"}, {None}
        if set(met) in alike:
            return
        right = met[self.fault.victim] in ("MemoryError", "OSError", "CollectiveFailed")
        self.must(right, f"ranks met {met}")
        if not self.must(self.struck is not None, "the fault did not strike"):
            return
        for rank in self.others:
            self._learns_of_victim(rank)

    def ended(self):
        """The launcher ended as it was told to, if it was not at its end already.

        An interpreter that imports the module of ``-m`` answers Ctrl-C itself, and exits with 1.
        """
        text = self.seen.launcher_text
        if not any(self.accounts) and "runpy" in text and text.endswith("KeyboardInterrupt\n"):
            return
        code = -self.kind.signal if self.fault.kind == "launcher_killed" else 128 + self.kind.signal
        self.must(self.seen.launcher in (0, code, -self.kind.signal),
                  f"the launcher ended with {self.seen.launcher}")  # fmt: skip

    def _launcher_says(self, code):
        """Its exit code is the culprit's; of a rank that exits with 0 too early, another's."""
        expected = 128 - code if code < 0 else code or 1
        came = self.seen.launcher
        self.must(came == expected, f"the launcher ended with {came} instead of {expected}")


def percentiles(times):
    """Return p50, p95 and the longest of some times."""
    if not times:
        return 0.0, 0.0, 0.0
    cuts = statistics.quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 20
    return statistics.median(times), cuts[-1], max(times)
