"""Train a case, and judge its bounds beside the optimum that HiGHS finds."""

import contextlib
import time
from dataclasses import replace

import numpy as np
from training.plan import Options
from training.run import Run, StageInfeasible, run_case
from training.share import shared_setting

from tests.examples.highs_reference import extensive_form
from tests.wild.draw import ITERATIONS, draw
from tests.wild.oddities import spill_costs_more_than_all

LIMITS = {"fall": 1e-8, "above": 1e-9, "below": 1e-7}
"""How much a bound may fall, exceed the optimum, and be below it when settled, relatively."""
DEAR = {"fall": 1e-6, "above": 1e-9, "below": 1e-6}
"""The limits if spill costs more than everything else. The training of such a case may also fail
with the error that the solver failed."""
LEAST = 1e-4
"""Differences are relative to the optimum, or to this part of the cost of `doing_nothing`."""
BUDGET = 100_000
"""The most stage problems that a case solves; if it does not settle, "below" is not compared."""


def doing_nothing(case):
    """Return what it costs to buy all demand at the highest price, and to spill all water."""
    steps = [step.cost for bus in case.buses for step in bus.deficit]
    price = max([*steps, *(cost for plant in case.thermals for cost in plant.cost)])
    spill = max(hydro.spill_cost for hydro in case.hydros)
    # a cost of spill that no dispatch pays would make every relative difference small
    if price > 0.0:
        spill = min(spill, 100.0 * price)
    bought = sum(max(sum(by_bus) for by_bus in stage) for stage in case.demand) * price
    rain = sum(np.array(stage).sum(axis=1).max() for stage in case.inflows)
    return bought + spill * (rain + sum(hydro.v0 for hydro in case.hydros))


def relative(difference, optimum, case, least=LEAST):
    """Return a difference, relative to an optimum that may be zero."""
    size = max(abs(optimum), least * doing_nothing(case))
    return difference / size if size > 0.0 else difference


def settle(case, comm):
    """Train until settled; return the bounds, and the reason for the stop if it settled."""
    with (
        shared_setting(comm, case) as setting,
        contextlib.closing(Run(setting, Options(select=False))) as run,
    ):
        solves = run.plan.trajectories * int(setting.problem.first[-1])
        most = max(ITERATIONS, BUDGET // solves)
        while not run.stopping.reason and len(run.trace) < most:
            run.advance(lambda number, line: None)
        settled = run.stopping.reason in ("every path settled", "no new cuts")
        bounds = run.trace["lower_bound"] * setting.units.money
        return bounds.tolist(), run.stopping.reason if settled else None


def fall_of(bounds, case):
    """Return the largest fall of a bound, as a relative difference."""
    falls = -np.diff(bounds, prepend=bounds[0])
    return relative(float(falls.max()), bounds[-1], case)


def judge(number, comm):
    """Return what was found at case `number`, with a list of problems, empty if all is well."""
    drawn, start = draw(number), time.perf_counter()
    case = drawn.case()
    found = {"number": number, "case": case.name, "oddities": drawn.oddities, "problems": []}
    found |= {"units": drawn.units, "passes": drawn.passes, "small": drawn.is_small}
    try:
        compare(drawn, case, comm, found)
    except StageInfeasible as failure:
        if is_dear(drawn) and "the solver failed" in str(failure):
            found["refused"] = str(failure)
        else:
            found["problems"].append(("failed", str(failure)))
    found["seconds"] = time.perf_counter() - start
    return found


def is_dear(drawn):
    """Tell whether spill costs more than everything else."""
    return spill_costs_more_than_all.__name__ in drawn.oddities


def compare(drawn, case, comm, found):
    """Add differences to `found`, and a problem for each difference that is too large."""
    options = Options(iterations=ITERATIONS, trajectories=drawn.passes, select=False)
    # with selection of cuts, bounds may fall
    selected = run_case(case, comm, replace(options, select=True)).lower_bound
    runs = {"twenty": run_case(case, comm, options).lower_bound}
    if drawn.is_small:
        runs["settled"], found["stopped"] = settle(case, comm)
    found["bounds"] = {name: bounds[-1] for name, bounds in runs.items()}
    found["iterations"] = len(runs.get("settled", ()))
    # Bounds are compared in units near one, because volumes in different units cannot be added, and
    # because HiGHS's tolerances are absolute.
    plain, money = drawn.plain(), drawn.units[2]
    bounds = {name: np.array(bounds) / money for name, bounds in runs.items()}
    found["fall"] = max(fall_of(values, plain) for values in bounds.values())
    if drawn.is_small:
        optimum = extensive_form(plain)
        found["optimum"] = optimum * money
        above = max(*(values.max() for values in bounds.values()), max(selected) / money) - optimum
        found["above"] = relative(above, optimum, plain)
        if found["stopped"]:
            found["below"] = relative(optimum - bounds["settled"][-1], optimum, plain)
    for kind, limit in (DEAR if is_dear(drawn) else LIMITS).items():
        if not found.get(kind, 0.0) <= limit:
            told = f"{found[kind]:.2e} where {limit:.0e} is allowed"
            found["problems"].append((kind, told))
