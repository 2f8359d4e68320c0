"""The judge of ranks' accounts after a fault of the campaign."""

from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.cases.faults.fault import CLOSE, START
from cobre_comm.testing.cases.faults.judge import Judge
from tests.campaign.kinds import SIGNALS

START_S = 3.0  # ranks look for each other for this time, if a rank may be lost meanwhile


def judge(fault, accounts, seen):
    """Return the verdict."""
    return CampaignJudge(fault, accounts, seen).verdict()


class CampaignJudge(Judge):
    """Judges also what a launcher did, what a rank kept open, and the campaign's own promises."""

    def __init__(self, fault, accounts, seen):
        super().__init__(fault, accounts, seen)
        self.is_launched = fault.start != "hand"

    def anything(self):
        super().anything()
        # An MPI opens descriptors only when it needs them, and keeps them open.
        if self.fault.kind != "descriptors" and not BackendName.parse(self.fault.backend).is_mpi:
            for rank, told in enumerate(self.accounts):
                self.must(not told.get("left"), f"rank {rank} keeps {told.get('left')}")

    def must_end(self, rank, code):
        if not self.is_launched:
            super().must_end(rank, code)

    def need_not_learn(self, rank):
        """Tell whether a rank may end without an error.

        A rank may, if a launcher may have ended the rank before the error, or if the rank was at
        its end and needed no other rank.
        """
        is_at_the_end = self.fault.moment == CLOSE or self.goes_on()
        return self.is_launched or (is_at_the_end and "done" in self.accounts[rank])

    def goes_on(self):
        """Tell whether a victim that has closed its descriptors has still completed all its work.

        When the victim closed its descriptors, it gave up its lock. So a rank that polls while the
        victim is late concludes that the victim has died, even in the last collective.
        """
        return self.fault.kind == "descriptors" and "done" in self.accounts[self.fault.victim]

    def learns_of_victim(self, rank):
        told = self.accounts[rank]
        caught = told.get("caught", {})
        if caught.get("error") != "InitializationFailed" or "met" in told:
            super().learns_of_victim(rank)
            return
        self.must(self.fault.moment == START, f"rank {rank}: {caught['text']}")
        self.must("rank" in caught["text"], f"rank {rank}: {caught['text']}")
        self.in_time(rank, caught, self.struck or 0.0, START_S)

    def lost(self):
        super().lost()
        if self.is_launched and self.struck is not None:
            self._launcher_says(self.kind.exit_code)

    def nothing(self):
        super().nothing()
        if self.is_launched:
            self.must(self.seen.launcher == 0, f"the launcher ended with {self.seen.launcher}")

    def astray(self):
        texts = set()
        for rank in self.everyone:
            self.must_end(rank, 0)
            caught = self.accounts[rank].get("caught")
            if caught is None:
                self.must(self.need_not_learn(rank), f"rank {rank} met no error")
                continue
            right = caught["error"] in ("CollectiveFailed", "InvalidBufferSize")
            right = right and caught["step"] == self.fault.step
            right = right and (self.fault.size == 2 or caught["ranks"] == [self.fault.victim])
            self.must(right, f"rank {rank} met {caught}")
            texts.add(caught["text"].partition(": ")[2])
            self.must(f"rank {self.fault.victim}" in caught["text"], f"who? {caught['text']}")
            self.in_time(rank, caught, max(self.struck or 0.0, caught["entered"]))
        self.must(len(texts) <= 1, f"ranks are told different things: {texts}")

    def unsaid(self):
        for rank in self.everyone:
            self.must("done" in self.accounts[rank], f"rank {rank} gives no account")
        self.must(self.seen.launcher == 1, f"the launcher ended with {self.seen.launcher}")
        says = "No space left on device" in self.seen.launcher_text
        self.must(says, f"the launcher says {self.seen.launcher_text!r}")

    def failed(self):
        self.must(self.struck is not None, "the fault did not strike")
        self._launcher_says(self.kind.exit_code)
        named = f"rank {self.fault.victim} was ended by signal {-self.kind.exit_code}"
        right = named in self.seen.launcher_text and "go on" not in self.seen.launcher_text
        self.must(right, f"the launcher says {self.seen.launcher_text!r}")

    def short(self):
        """All ranks succeed, or all get the same error, or the others name a victim that failed."""
        met = [told.get("caught", {}).get("error") for told in self.accounts]
        for rank in self.everyone:
            self.must_end(rank, 0)
        alike = {"AllocationFailed"}, {"InitializationFailed"}, {None}
        if set(met) in alike:
            return
        right = met[self.fault.victim] in ("MemoryError", "OSError", "CollectiveFailed")
        right = right or self.goes_on()
        self.must(right, f"ranks met {met}")
        if not self.must(self.struck is not None, "the fault did not strike"):
            return
        for rank in self.others:
            self.learns_of_victim(rank)

    def ended(self):
        """The launcher was ended by the signal, or it had come to its end already.

        While an interpreter still imports ``site`` or the module of ``-m``, Python itself answers
        Ctrl-C, and exits with 1.
        """
        text = self.seen.launcher_text
        begins = "runpy" in text or "init_import_site" in text
        if not any(self.accounts) and begins and text.endswith("KeyboardInterrupt\n"):
            return
        number = SIGNALS[self.fault.kind]
        code = -number if self.fault.kind == "launcher_killed" else 128 + number
        self.must(self.seen.launcher in (0, code, -number),
                  f"the launcher ended with {self.seen.launcher}")  # fmt: skip

    def _launcher_says(self, code):
        """The launcher ends with the exit code of the victim, or with 1 if this code is 0."""
        expected = 128 - code if code < 0 else code or 1
        came = self.seen.launcher
        self.must(came == expected, f"the launcher ended with {came} instead of {expected}")
