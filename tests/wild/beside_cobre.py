"""Train a case by the example and by Cobre until both converge, and compare their bounds.

This file also asks Cobre about each mutant of a folder: Cobre has to read or refuse the mutant, as
the table of mutants says.
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path

from cobre.write import write_case
from training.run import StageInfeasible

from tests.examples.cobre_changes import REFUSED
from tests.examples.cobre_mutants import MUTANTS, make_mutant, write_base
from tests.examples.highs_reference import extensive_form
from tests.wild import ROOT
from tests.wild.draw import draw_for_cobre
from tests.wild.judge import relative, settle

RUN_COBRE = ROOT / "bench" / "cobre" / "run_cobre.py"
ALIKE = 1e-6
"""Converged bounds differ by less than this, relatively."""
PART = 0.1
"""Differences are relative to the optimum or to this part of the cost of doing nothing, because the
tolerances of Cobre's solver are absolute."""
CALM = 1e-8
"""A bound has converged if it rose by less than this in the last quarter of its iterations."""
PASSES = 8
ITERATIONS = 60, 240
"""Iterations of Cobre: first 60, then 240 if the bound of Cobre has not converged."""
LIMIT_S = 300.0
"""For one training by Cobre, because Cobre's solver may never end."""


def train_cobre(python, case, iterations):
    """Return the bounds of Cobre, which may end with an error, or may not end."""
    with tempfile.TemporaryDirectory() as name:
        write_case(case, Path(name) / "case", PASSES, iterations)
        return run_cobre(python, Path(name) / "case")["bounds"]


def run_cobre(python, folder):
    """Return what `bench/cobre/run_cobre.py` writes about the training of a folder."""
    out = folder.with_suffix(".told.json")
    words = [str(word) for word in (python, RUN_COBRE, folder, 1, out)]
    subprocess.run(words, capture_output=True, check=True, timeout=LIMIT_S)
    return json.loads(out.read_text())


def judge_mutant(name, python):
    """Return what Cobre makes of a mutant, and a problem if the table says something else."""
    expected = MUTANTS[name].cobre
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch) / "base"
        write_base(base)
        try:
            told = run_cobre(python, make_mutant(base, name, Path(scratch) / name))["lower_bound"]
        except subprocess.CalledProcessError:
            told = REFUSED
    same = told is expected
    if None not in (told, expected):
        same = abs(told - expected) <= ALIKE * abs(expected)
    problems = [] if same else [("mutant", f"Cobre: {told}, recorded: {expected} (None: refused)")]
    return {"number": name, "problems": problems, "bound": told}


def converged(bounds, case):
    """Tell whether a bound has stopped rising."""
    rise = bounds[-1] - bounds[-1 - len(bounds) // 4]
    return bool(relative(rise, bounds[-1], case) <= CALM)


def judge_beside_cobre(number, comm, python):
    """Return what was found at case `number` of `draw_for_cobre`, in a dict like `judge`'s."""
    drawn, start = draw_for_cobre(number), time.perf_counter()
    case = drawn.case()
    found = {"number": number, "case": case.name, "oddities": drawn.oddities, "problems": []}
    found |= {"units": drawn.units, "optimum": extensive_form(drawn.plain()) * drawn.units[2]}
    try:
        compare(case, comm, python, found)
    except StageInfeasible as failure:
        found["problems"].append(("failed", str(failure)))
    except subprocess.SubprocessError as failure:  # Cobre has failed, and Cobre is not judged
        found["unfinished"] = str(failure)
    found["seconds"] = time.perf_counter() - start
    return found


def compare(case, comm, python, found):
    """Add differences to `found`, and a problem if a difference is too large."""
    ours, found["stopped"] = settle(case, comm)
    for iterations in ITERATIONS:
        theirs = train_cobre(python, case, iterations)
        found["converged"] = converged(theirs, case)
        if found["converged"]:
            break
    found |= {"ours": ours[-1], "theirs": theirs[-1], "iterations": (len(ours), len(theirs))}
    if not (found["stopped"] and found["converged"]):
        return
    optimum = found["optimum"]
    found["cobre"] = relative(abs(ours[-1] - theirs[-1]), optimum, case, PART)
    found["ours to optimum"] = relative(abs(ours[-1] - optimum), optimum, case, PART)
    found["theirs to optimum"] = relative(abs(theirs[-1] - optimum), optimum, case, PART)
    if not found["cobre"] <= ALIKE:
        found["problems"].append(("cobre", f"{found['cobre']:.2e} where {ALIKE:.0e} is allowed"))
