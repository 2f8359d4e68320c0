"""Counts what was found at cases, and prints the counts."""

KINDS = {
    "fall": "a bound falls by",
    "above": "a bound exceeds the optimum by",
    "below": "a settled bound is below the optimum by",
    "cobre": "converged bounds of Cobre and ours differ by",
    "ours to optimum": "of these, ours and the optimum by",
    "theirs to optimum": "Cobre's and the optimum by",
}
OPTIONS = {"wild": "--number", "cobre": "--cobre-number"}
EVERY = 25


class Tally:
    """What was found at all cases until now."""

    def __init__(self):
        self.found, self.problems = {"wild": [], "cobre": [], "mutant": []}, []

    def add(self, kind, number, found):
        """Add what was found at a case, and print its problems."""
        if not isinstance(found, dict):
            found = {"number": number, "problems": [("failed", f"no answer: {found!r}")]}
        self.found[kind].append(found)
        for what, told in found["problems"]:
            self.problems.append((kind, number, what))
            again = f"python -m tests.wild {OPTIONS[kind]} {number}" if kind in OPTIONS else number
            print(f"MISS {what}: {again}\n    {told}", flush=True)
        if len(self.found[kind]) % EVERY == 0:
            print(f"{len(self.found[kind])} cases", flush=True)

    def largest(self, kind):
        """Return the count of differences of this kind, the largest difference, and its case."""
        compared = [
            (found[kind], found["number"])
            for found in [*self.found["wild"], *self.found["cobre"]]
            if kind in found
        ]
        return len(compared), *max(compared, default=(0.0, None))

    def text(self, seconds):
        """Return the summary."""
        wild, cobre, mutants = (self.found[kind] for kind in ("wild", "cobre", "mutant"))
        small = [found for found in wild if found.get("small")]
        settled = [found for found in small if found.get("stopped")]
        failed = [problem for problem in self.problems if problem[2] == "failed"]
        refused = sum("refused" in found for found in wild)
        unfinished = sum("unfinished" in found for found in cobre)
        lines = [
            f"{len(wild)} cases, {len(small)} of them with a small tree, {len(settled)} settled, "
            f"{refused} refused; "
            f"{len(cobre)} with Cobre, of which it did not finish {unfinished}; "
            f"{len(mutants)} mutants with Cobre",
            f"{len(failed)} failures, {len(self.problems) - len(failed)} differences too large, "
            f"{seconds / 60:.0f} minutes",
        ]
        for kind, words in KINDS.items():
            count, difference, number = self.largest(kind)
            if count:
                lines.append(f"{words} {difference:.1e} at most (case {number} of {count})")
        return "\n".join(lines)
