"""Judges the accounts of ranks after a fault; a pure function of all observed facts."""

from dataclasses import dataclass, field

from cobre_comm.testing.backend_name import BackendName, node_of_ranks
from cobre_comm.testing.cases.calls import OPERATIONS
from cobre_comm.testing.cases.faults.calling import are_refused
from cobre_comm.testing.cases.faults.kinds import KINDS, LATE, LOST

# Kinds of faults in which the victim itself tells the others that it ends.
SAYS_GOODBYE = {"closed", "exit_0", "exit_code", "raised", "raised_oddly"}
PROMISED_S = 1.0  # from the fault to the error, on a machine that has nothing else to do


@dataclass(frozen=True)
class Seen:
    """Facts about a job that no account of a rank has, such as exit codes."""

    exit_codes: tuple = ()  # of the ranks; None for a rank that was busy at the deadline
    margin_s: float = 1.0  # added to each promised time, because this machine may be busy
    timeout_variable: str = ""  # the variable that an error about a late rank has to name
    overdue: bool = False  # whether a rank was still busy at the deadline
    names: tuple = ()  # names that were left in shared memory
    processes: tuple = ()  # processes that were left alive
    launcher: int | None = None  # the exit code of the launcher; it has to be that of the lost rank
    launcher_text: str = ""  # what the launcher wrote


@dataclass
class Verdict:
    """The problems that the judge found, and when each survivor knew of the fault, in seconds."""

    problems: list = field(default_factory=list)
    times: list = field(default_factory=list)


def promise_of(fault):
    """Return the promise of a fault; over MPI the loss of a whole node shows as lateness."""
    promise, nodes = KINDS[fault.kind].promise, []
    if BackendName.parse(fault.backend).is_mpi:
        nodes = node_of_ranks(fault.backend, fault.size)
    is_alone = nodes and nodes.count(nodes[fault.victim]) == 1
    return LATE if promise == LOST and is_alone and fault.kind not in SAYS_GOODBYE else promise


class Judge:
    """Judges the ranks of a job by its fault and their accounts; each promise is a method."""

    def __init__(self, fault, accounts, seen):
        self.fault, self.accounts, self.seen = fault, list(accounts), seen
        self.kind = KINDS[fault.kind]
        self.problems, self.times = [], []
        # If there are two victims, the second may learn that the first is lost before it is struck
        # itself.
        struck = {v: accounts[v]["struck"] for v in fault.victims if "struck" in accounts[v]}
        self.victims, self.struck = list(struck), max(struck.values(), default=None)
        self.others = [rank for rank in range(fault.size) if rank not in struck]
        self.everyone = range(fault.size)

    def verdict(self):
        """Judge all ranks; return a :class:`Verdict`."""
        self.anything()
        getattr(self, promise_of(self.fault))()
        return Verdict(self.problems, self.times)

    def must(self, holds, text):
        if not holds:
            self.problems.append(text)
        return bool(holds)

    # The promise that holds for every fault.
    def anything(self):
        self.must(not self.seen.overdue, "a rank was still busy at the deadline")
        self.must(not self.seen.names, f"left in shared memory: {self.seen.names}")
        self.must(not self.seen.processes, f"left alive: {self.seen.processes}")
        for rank, told in enumerate(self.accounts):
            self.must(not told.get("written"), f"rank {rank}: a failed call wrote to its output")
            if caught := told.get("caught"):
                self.must(caught["error"] != "Wrong", f"rank {rank}: wrong data: {caught['text']}")
                self._later(rank, caught, told.get("later"))

    def _later(self, rank, caught, later):
        """Demand that each later collective failed at once."""
        if caught["error"] not in ("CollectiveFailed", "InvalidBufferSize") or later is None:
            return
        self.must(are_refused(later), f"rank {rank}: later collectives: {later}")
        took = self.accounts[rank]["took"]
        self.must(took < PROMISED_S + self.seen.margin_s, f"rank {rank}: they took {took} s")

    def must_end(self, rank, code):
        """Demand that the process of a rank has ended with this exit code."""
        came = self.seen.exit_codes[rank]
        self.must(came == code, f"rank {rank} ended with {came} instead of {code}")
        if code == 0 and self.fault.kind not in ("exit_0", "exec"):
            self.must("done" in self.accounts[rank], f"rank {rank} gives no account")

    def need_not_learn(self, rank):
        """Whether a rank may have ended before it could learn of the fault."""
        return False

    # The promises of `kinds.py`, each a method.
    def lost(self):
        if not self.must(self.struck is not None, "the fault did not strike"):
            return
        for victim in self.victims:
            if len(self.victims) == 1 or "caught" not in self.accounts[victim]:
                self.must_end(victim, self.kind.exit_code)
        for rank in self.others:
            self.must_end(rank, 0)
            self.learns_of_victim(rank)

    def interrupted(self):
        victim = self.fault.victim
        account = self.accounts[victim]
        caught = account.get("caught", {})
        if self.must(caught.get("error") == self.kind.meets, f"the victim met {caught}: {account}"):
            self.in_time(victim, caught, max(self.struck or 0.0, caught["entered"]))
        for rank in self.everyone:
            self.must_end(rank, 0)
        for rank in self.others:
            self.learns_of_victim(rank)

    def learns_of_victim(self, rank):
        """Demand that a rank's error names some victim and no other rank, and came in time."""
        caught = self.accounts[rank].get("caught")
        if caught is None:
            may = self.need_not_learn(rank)
            self.must(may, f"rank {rank} did not learn that {self.victims} were lost")
            return
        named = caught["ranks"]
        right = caught["error"] == "CollectiveFailed" and {*named} <= {*self.victims}
        right = right and named and all(str(victim) in caught["text"] for victim in named)
        self.must(right, f"rank {rank} met {caught['error']} of {named}: {caught['text']}")
        self.in_time(rank, caught, max(self.struck or 0.0, caught["entered"]))

    def in_time(self, rank, caught, since, more_s=0.0):
        """Demand that a rank learnt of the fault soon enough."""
        took = caught["at"] - since
        self.times.append(max(0.0, took))
        limit = PROMISED_S + more_s + self.seen.margin_s
        self.must(took < limit, f"rank {rank} learnt of it after {took:.2f} s, not {limit:.2f}")

    def late(self):
        limit, victim = self.fault.limit_s, self.fault.victim
        self.must_end(victim, self.kind.exit_code)
        for rank in self.others:
            self.must_end(rank, 0)
        for rank in self.others:
            caught = self.accounts[rank].get("caught")
            if caught is None:
                self.must(self.need_not_learn(rank), f"rank {rank} did not miss rank {victim}")
                continue
            right = caught["error"] == "CollectiveFailed" and caught["ranks"] == [victim]
            right = right and self.seen.timeout_variable in caught["text"]
            self.must(right, f"rank {rank} met {caught['error']}: {caught['text']}")
            waited = caught["at"] - max(caught["entered"], self.struck or 0.0)
            least, most = 0.8 * limit, limit + PROMISED_S + self.seen.margin_s
            self.must(least < waited < most, f"rank {rank} waited {waited:.2f} s, not {limit}")
        lives = self.kind.promise == LATE and not self.need_not_learn(victim)
        self.must(not lives or "caught" in self.accounts[victim], "the late rank met no error")

    def nothing(self):
        for rank in self.everyone:
            self.must_end(rank, 0)
            told = self.accounts[rank]
            self.must("caught" not in told, f"rank {rank} met {told.get('caught')}")
            self.must("done" in told, f"rank {rank} gives no account")

    def refused(self):
        self.nothing()
        account = self.accounts[self.fault.victim]
        told = account.get("refused", [])
        word = "thread" if self.fault.kind == "second_thread" else "fork"
        count = len(OPERATIONS) + 3 if self.fault.kind.startswith("use_in_child") else 1
        right = len(told) == count and all(word in text for text in told)
        self.must(right, f"the other is told {told}: {account}")
