"""SDDP in one file: how much water to keep, on one process or on many.

``python examples/first_sddp.py`` trains a policy for four reservoirs in a cascade, and ``cobre-comm
run -n 4 examples/first_sddp.py`` trains it on four ranks. The printed digits do not depend on the
number of ranks, nor on where the ranks run. To train another case, such as a case of
``examples/sddp/cases``, add its path.

An iteration simulates the present policy on some trajectories, forward through the stages. Then it
adds cuts backward: one to each stage at each volume that the trajectories have met. Ranks share out
the trajectories. Two lines communicate: `allgatherv` gives every rank the cuts of all ranks, and
`exact_sum` adds up the simulated costs. Both lines are in compiled code, like everything else that
takes time.
"""

import argparse
import hashlib
import json
import pathlib
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre_comm import Communicator, create_communicator, random

CASES = pathlib.Path(__file__).parent / "sddp" / "cases"
Floats = NDArray[np.float64]
MOST_CUTS = 100  # the most cuts that may bind in one stage problem; the pool has thousands
MOST_PIVOTS = 10_000
CLOSE = 1e-9  # a relative difference as small as this counts as none
NOISE = 1e-7  # an entry below this part of the largest entry of its row counts as zero


# ---- The stage problem ----------------------------------------------------------------------
#
# Minimise what thermal plants, spilled water and unmet demand cost now, plus the cost of the stages
# to come, which cuts estimate. The columns, for H reservoirs: H volumes at the end, H + 1
# constants, the cost to go, H spills, the deficit, then turbines and thermal plants. The rows: H
# balances of water, and demand. A row's constant is a column with equal bounds, so that all right
# sides are zero, and the reduced cost of this column is the row's price.


class System(NamedTuple):
    """Stages T, outcomes K of a stage, reservoirs H, columns C of the stage problem."""

    cost: Floats  # [T, C]
    low: Floats  # [C]
    high: Floats  # [C]
    rows: Floats  # [H + 1, C], after the elimination of the columns `basic`
    basic: NDArray[np.int64]  # [H + 1] the spills and the deficit
    reduced: Floats  # [T, C] the costs after the elimination of the columns `basic`
    inflow: Floats  # [T, K, H]
    demand: Floats  # [T, K]
    chance: Floats  # [T, K]
    start: Floats  # [H] volumes at the start


KNOWN = {  # the fields of each part of a case that are read here, or that only describe the case
    "case": "name description features source published verified dp1d_step stages hydros thermals "
    "deficit_cost demand demand_outcomes inflows probabilities discount",
    "features": "cascade stage_cost random_demand segments random_stage1 deterministic discount",
    "hydros": "name vmin vmax v0 qmax productivity segments spill_cost downstream",
    "segments": "qmax productivity",
    "thermals": "name least capacity cost",
}
LISTS = (*KNOWN, "demand", "demand_outcomes", "inflows", "probabilities", "cost")
# further fields, each with the value by which it changes nothing
NEUTRAL = [("terminal_value", 0), ("bus", 0), ("limits", [])]


def refuse_unknown(fields: dict[str, Any], part: str = "case", path: str = "") -> None:
    """Raise if a part of a case has a field that this program would ignore."""
    for name, value in fields.items():
        is_known = name in KNOWN[part].split()
        by_stage = is_known and isinstance(value, list) and name not in LISTS
        if by_stage or (not is_known and (name, value) not in NEUTRAL):
            what = f"{path}{name}{' by stage' if by_stage else ''}"
            raise ValueError(f"this program has no {what}: train the case by sddp/train.py")
        if name in KNOWN:
            # the features of a case are names, not objects
            for number, each in enumerate(value or ()):
                inner: dict[str, Any] = each if isinstance(each, dict) else {str(each): None}
                refuse_unknown(inner, name, f"{path}{name}[{number}].")


def read(path: pathlib.Path) -> System:
    """Read a case in the schema of ``examples/sddp/cases``; raise if it has other fields."""
    case = json.loads(path.read_text())
    refuse_unknown(case)
    stages, hydros, thermals = case["stages"], case["hydros"], case["thermals"]
    turbines = [
        (number, turbine)
        for number, hydro in enumerate(hydros)
        for turbine in hydro.get("segments") or [hydro]
    ]
    h, spill = len(hydros), 2 * len(hydros) + 2
    first = spill + h + 1  # the column of the first turbine
    columns = first + len(turbines) + len(thermals)
    low, high = np.zeros(columns), np.full(columns, np.inf)
    a, cost = np.zeros((h + 1, columns)), np.zeros((stages, columns))
    a[:, h : 2 * h + 1] = np.eye(h + 1)
    a[h, spill + h] = 1.0  # unmet demand
    cost[:, spill + h] = case["deficit_cost"]
    released = [(spill + n, n) for n in range(h)]
    for column, (number, turbine) in enumerate(turbines, first):
        released.append((column, number))
        high[column], a[h, column] = turbine["qmax"], turbine["productivity"]
    for column, number in released:
        a[number, column] = 1.0
        if hydros[number]["downstream"] >= 0:
            a[hydros[number]["downstream"], column] = -1.0
    for number, hydro in enumerate(hydros):
        a[number, number] = 1.0
        low[number], high[number] = hydro["vmin"], hydro["vmax"]
        cost[:, spill + number] = hydro["spill_cost"]
    for column, plant in enumerate(thermals, first + len(turbines)):
        low[column], high[column] = plant.get("least", 0.0), plant["capacity"]
        cost[:, column], a[h, column] = plant["cost"], 1.0
    cost *= case.get("discount", 1.0) ** np.arange(stages)[:, None]
    cost[:, 2 * h + 1] = 1.0  # the cost to go is discounted already
    basic = np.arange(spill, spill + h + 1)
    rows = np.linalg.solve(a[:, basic], a).astype(np.float64)
    reduced = cost - cost[:, basic] @ rows
    reduced[:, basic] = 0.0
    outcomes = max(len(chances) for chances in case["probabilities"])
    inflow, demand = np.zeros((stages, outcomes, h)), np.zeros((stages, outcomes))
    # outcomes that a stage does not have keep the chance zero
    chance = np.zeros((stages, outcomes))
    for t in range(stages):
        count = len(case["probabilities"][t])
        chance[t, :count], inflow[t, :count] = case["probabilities"][t], case["inflows"][t]
        demand[t, :count] = (case.get("demand_outcomes") or case["demand"])[t]
    start = np.array([hydro["v0"] for hydro in hydros], dtype=np.float64)
    return System(cost, low, high, rows, basic, reduced, inflow, demand, chance, start)


@njit(cache=True)
def pivot(
    rows: Floats, x: Floats, low: Floats, high: Floats, reduced: Floats, basic: NDArray[np.int64]
) -> None:
    """Solve by the dual simplex method, from a basis with reduced costs of the right signs.

    Each row says that its basic column is minus the sum of its other terms. If a basic column is
    outside its bounds, it leaves the basis for the nearer bound. The column with the least ratio of
    reduced cost to entry enters the basis. The order of columns breaks ties, so all ranks take
    equal steps.
    """
    for _ in range(MOST_PIVOTS):
        leaving, worst = -1, CLOSE
        for row in range(len(rows)):
            b = basic[row]
            outside = max(low[b] - x[b], x[b] - high[b]) / max(1.0, abs(x[b]))
            if outside > worst:
                leaving, worst = row, outside
        if leaving < 0:
            return
        b = basic[leaving]
        bound = low[b] if x[b] < low[b] else high[b]
        sign = 1.0 if x[b] < low[b] else -1.0
        entering, least = -1, np.inf
        smallest = NOISE * np.max(np.abs(rows[leaving]))
        for column in range(len(x)):
            slope = sign * rows[leaving, column]
            if column == b or low[column] == high[column] or abs(slope) < smallest:
                continue
            if x[column] == (low[column] if slope < 0.0 else high[column]):
                ratio = abs(reduced[column] / slope)
                if ratio < least:
                    entering, least = column, ratio
        if entering < 0:
            raise RuntimeError("a stage problem has no solution")
        step = (x[b] - bound) / rows[leaving, entering]
        for row in range(len(rows)):
            x[basic[row]] -= rows[row, entering] * step
        x[entering] += step
        x[b] = bound
        basic[leaving] = entering
        rows[leaving] /= rows[leaving, entering]
        for row in range(len(rows)):
            if row != leaving:
                rows[row] -= rows[row, entering] * rows[leaving]
        reduced -= reduced[entering] * rows[leaving]
    raise RuntimeError("a stage problem takes too many pivots")


@njit(cache=True)
def solve(
    system: System, t: int, volume: Floats, outcome: int, cuts: Floats, left: Floats, worth: Floats
) -> tuple[float, float]:
    """Solve the problem of stage t for the volumes at its start and one outcome.

    Return cost now and cost to go. Write the volumes at the end into `left`. Write into `worth`
    what one more unit of water at the start costs; water saves costs, so this number is negative. A
    cut is H slopes and a height at zero. The cut that is violated most becomes a row, until no cut
    is violated.
    """
    h, (m, n) = volume.size, system.rows.shape
    most = min(len(cuts), MOST_CUTS)
    rows, basic = np.zeros((m + most, n + most)), np.empty(m + most, np.int64)
    low, high = np.full(n + most, -np.inf), np.full(n + most, np.inf)
    x, reduced = np.zeros(n + most), np.zeros(n + most)
    rows[:m, :n], basic[:m], reduced[:n] = system.rows, system.basic, system.reduced[t]
    low[:n], high[:n] = system.low, system.high
    low[h : 2 * h] = -(volume + system.inflow[t, outcome])
    low[2 * h] = -system.demand[t, outcome]
    high[h : 2 * h + 1] = low[h : 2 * h + 1]
    for column in range(n):
        x[column] = high[column] if reduced[column] < 0.0 else low[column]
    x[basic[:m]] = 0.0
    for row in range(m):
        x[basic[row]] = -np.sum(rows[row, :n] * x[:n])
    added, taken = 0, np.zeros(len(cuts), np.bool_)
    while True:
        now, last = m + added, n + added
        pivot(rows[:now, :last], x[:last], low, high, reduced[:last], basic[:now])
        to_go = x[2 * h + 1]
        highest, height = -1, to_go + CLOSE * max(1.0, abs(to_go))
        for cut in range(len(cuts)):
            value = cuts[cut, h] + np.sum(cuts[cut, :h] * x[:h])
            if value > height and not taken[cut]:
                highest, height = cut, value
        if highest < 0:
            break
        if added == most:
            raise RuntimeError("too many cuts bind in one stage problem")
        # The new column is the cost to go minus slopes times volumes. The height of the cut is the
        # column's lower bound.
        row = rows[now]
        row[last], row[2 * h + 1], row[:h] = 1.0, -1.0, cuts[highest, :h]
        low[last], x[last] = cuts[highest, h], to_go - np.sum(cuts[highest, :h] * x[:h])
        for other in range(now):
            row -= row[basic[other]] * rows[other]
        basic[now], taken[highest] = last, True
        added += 1
    left[:], worth[:] = x[:h], -reduced[h : 2 * h]
    return np.sum(system.cost[t] * x[:n]) - to_go, to_go


# ---- Training -------------------------------------------------------------------------------


@njit(cache=True)
def draw(system: System, t: int, chance: float) -> int:
    """Return the outcome of a stage to which a number in [0, 1) belongs."""
    outcome = 0
    while outcome < system.chance.shape[1] - 1 and chance >= system.chance[t, outcome]:
        chance -= system.chance[t, outcome]
        outcome += 1
    return outcome


@njit(cache=True)
def mean_cost(system: System, t: int, volume: Floats, cuts: Floats, cut: Floats) -> float:
    """Return the mean cost from stage t to the end, over outcomes; write the cut at `volume`."""
    h, mean = volume.size, 0.0
    left, worth = np.empty(h), np.empty(h)
    cut[:] = 0.0
    for outcome in range(system.chance.shape[1]):
        chance = system.chance[t, outcome]
        if chance > 0.0:
            now, to_go = solve(system, t, volume, outcome, cuts, left, worth)
            mean += chance * (now + to_go)
            cut[:h] += chance * worth
    cut[h] = mean - np.sum(cut[:h] * volume)
    return mean


@njit(cache=True, nogil=True)
def iterate(
    comm: Communicator, system: System, pool: Floats, iteration: int, passes: int, seed: int
) -> tuple[float, float]:
    """Do one iteration, which adds `passes` cuts to the pool of each stage; return both bounds."""
    stages, h = len(system.demand), system.start.size
    first, last = comm.share(passes)  # the trajectories of this rank
    counts, displs = comm.shares(passes, width=h + 1)
    # cuts of each stage so far; the last stage needs none, because no stage follows it
    count = iteration * passes
    volumes = np.empty((last - first, stages + 1, h))
    costs, cuts, worth = np.zeros(last - first), np.empty((last - first, h + 1)), np.empty(h)
    for mine in range(last - first):  # forward
        key = random.key(seed, iteration, first + mine)  # the same numbers on any rank
        volumes[mine, 0] = system.start
        for t in range(stages):
            outcome, ahead = draw(system, t, random.uniform(key, t)), pool[t + 1, :count]
            now, _ = solve(system, t, volumes[mine, t], outcome, ahead, volumes[mine, t + 1], worth)
            costs[mine] += now
    lower = 0.0
    for t in range(stages - 1, -1, -1):  # backward
        ahead = pool[t + 1, : count + passes]
        if t == 0:
            lower = mean_cost(system, t, system.start, ahead, np.empty(h + 1))
        else:
            for mine in range(last - first):
                mean_cost(system, t, volumes[mine, t], ahead, cuts[mine])
            comm.allgatherv(cuts, pool[t, count : count + passes], counts, displs)
    return lower, comm.exact_sum(costs) / passes


def main() -> None:
    """Train, and print both bounds of each iteration."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("case", type=pathlib.Path, nargs="?", default=CASES / "gen_h4_t5_k3.json")
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--passes", type=int, default=8, help="trajectories of an iteration")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        system = read(options.case)
    except ValueError as error:
        parser.error(f"{options.case}: {error}")
    stages, h = len(system.demand), system.start.size
    pool = np.zeros((stages + 1, options.iterations * options.passes, h + 1))
    with create_communicator() as comm:
        for iteration in range(options.iterations):
            lower, simulated = iterate(comm, system, pool, iteration, options.passes, options.seed)
            if comm.rank == 0:
                print(f"{iteration + 1:4}  lower bound {lower:14.4f}  simulated {simulated:14.4f}")
        if comm.rank == 0:
            print("cuts", hashlib.sha256(pool.tobytes()).hexdigest()[:16])


if __name__ == "__main__":
    # numba finds cached code again only if the module of `System` has a name other than __main__.
    import first_sddp

    first_sddp.main()
