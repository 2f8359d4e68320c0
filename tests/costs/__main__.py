"""Record what tests cost now, beside what they cost before: `python -m tests.costs FILE`.

FILE is what `tests/costs/plugin.py` has written. RECORDED keeps the costs by which `tests/rungs.py`
decides, and PAGE has the sums of this measurement beside those of the last one.
"""

import json
import pathlib
import sys
from collections import Counter

from tests.rungs import RECORDED, TABLE, in_any_folder

PAGE = pathlib.Path(__file__).parent / "README.md"
LEAST_S = 0.1  # tests that cost at least this much are recorded by their names
SMALL_S = 2.0  # files that cost less than this share a row
HEAD = """\
# What the tests cost

`make test-costs` has measured the seconds of CPU of each test, of all processes that worked while
the test ran: pytest, the ranks of pools, launchers, and all that these have started. This page has
the sums over the tests of `make test`, beside those of the measurement before. `recorded.json` has
each test of `make test` and of CI that costs a tenth of a second or more, without those of the
table of cases, which has a choice of its own. By these costs [`tests/rungs.py`](../rungs.py)
decides which tests `make test` runs. They leave out what later tests would have to pay instead:
compiling what is kept in a cache, and ranks that stay for other tests.

Compiling is a part of the seconds of ranks and programs, and is counted there too. A test waits
while none of its processes works: its waiting is its wall time less its CPU time. Other tests run
meanwhile, so that a test waits for them as well. Processors differ by a factor of two and more, so
the seconds of two measurements compare only where both ran on one machine; counts always do.
"""


def sums_of(tests):
    """Return sums over tests: seconds by kind of process and by file, and counts of processes."""
    kinds, starts, files = Counter(), Counter(), Counter()
    for name, cost in tests.items():
        kinds.update(cost["of"])
        starts.update({f"starts: {kind}": n for kind, n in cost["starts"].items()})
        files[name.partition("::")[0]] += cost["cpu"]

    def total(of):
        return sum(map(of, tests.values()))

    kinds["all processes"] = total(lambda cost: cost["cpu"])
    kinds["compiling, in any of them"] = total(lambda cost: cost["compiling"])
    kinds["waiting (of wall time)"] = total(lambda cost: max(0.0, cost["wall"] - cost["cpu"]))
    starts["tests"] = len(tests)
    starts["compilations"] = total(lambda cost: cost["compilations"])
    small = [name for name, cpu in files.items() if cpu < SMALL_S]
    files["all smaller ones"] = sum(files.pop(name) for name in small)
    columns = {"seconds of CPU": kinds, "how many": starts, "seconds of CPU, by file": files}
    return {name: {k: round(v, 1) for k, v in each.items()} for name, each in columns.items()}


def table(title, now, before):
    """Return a table of two measurements, with the largest row first."""
    names = sorted(now.keys() | before.keys(), key=lambda n: -max(now.get(n, 0), before.get(n, 0)))
    rows = [f"| {name} | {before.get(name, 0):,} | {now.get(name, 0):,} |" for name in names]
    return "\n".join([f"| {title} | before | now |", "|---|---|---|", *rows, ""])


def main(path):
    """Record a measurement as `now`; what was `now` until then becomes `before`."""
    measured = json.loads(pathlib.Path(path).read_text())
    tests = {in_any_folder(name): cost for name, cost in measured.items()}
    old = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    usual = {name: cost for name, cost in tests.items() if cost["is_usual"]}
    now, before = sums_of(usual), old.get("now", {})
    costly = {
        name: cost["by itself"]
        for name, cost in tests.items()
        if cost["by itself"] >= LEAST_S and not name.startswith(TABLE)
    }
    # A test that this measurement has not run keeps its recorded cost.
    costly = {name: cpu for name, cpu in old.get("tests", {}).items() if name not in tests} | costly
    record = {"now": now, "before": before, "tests": dict(sorted(costly.items()))}
    RECORDED.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text("\n".join([HEAD, *(table(t, now[t], before.get(t, {})) for t in now)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
