"""Evaluate a policy on scenarios, which the ranks share out."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from case.data import Bus, Case, Hydro, Line, Thermal
from compiled import compiled_by_one
from simplex.dual import OPTIMAL
from stage.columns import columns_of
from stage.failure import describe_failure
from stage.units import Units
from training.cuts import SharedCuts
from training.plan import Block
from training.resume import find_checkpoint, load_checkpoint
from training.run import StageInfeasible
from training.share import Setting, UsageError

from simulation.dispatch import COST, DECISION, LEFT, STATUS, new_desk, walk_block
from simulation.scenarios import Scenarios
from simulation.statistics import CostStatistics, cost_statistics


@dataclass(frozen=True)
class Evaluation:
    """The results of a policy; `table` has (S, T) arrays by name, in the units of the case."""

    case: Case
    backend: str
    ranks: int
    iterations: int  # iterations of the training
    source: str  # where the scenarios come from
    costs: np.ndarray  # (S,)
    statistics: CostStatistics
    table: dict[str, np.ndarray]


def evaluate(setting: Setting, policy: Path, scenarios: Scenarios, tail: float) -> Evaluation:
    """Evaluate the policy in the checkpoint `policy`; all ranks call this with equal arguments.

    Raises
    ------
    UsageError
        On every rank the same, if `policy` is no checkpoint of this case.
    StageInfeasible
        On every rank the same, for the first scenario in which a stage has no dispatch.
    """
    comm, problem = setting.comm, setting.problem
    header = find_checkpoint(setting, policy)
    if header is None:
        raise UsageError(f"there is no checkpoint {policy}; train.py --checkpoint makes one")
    stages, fields = setting.case.stages, DECISION + problem.a.shape[1] + len(setting.case.buses)
    shape = scenarios.count, stages, fields
    block = Block(*comm.share(scenarios.count))
    with (
        contextlib.closing(SharedCuts(setting)) as cuts,
        comm.create_shared_region(shape) as region,
    ):
        reference = load_checkpoint(setting, policy, header, cuts).reference
        records = region.part(0, scenarios.count)
        walk(setting, cuts, reference, scenarios, records[block.begin : block.end], block)
        gather(setting, scenarios.count, block, records)
        refuse_failed(setting.case, records)
        costs = total_costs(records, setting.units)
        table = table_of(setting.case, setting.units, records) if comm.rank == 0 else {}
        statistics = cost_statistics(comm, costs[block.begin : block.end], costs, tail)
        return Evaluation(
            setting.case, comm.backend, comm.size, header.iterations, scenarios.source, costs,
            statistics, table,
        )  # fmt: skip


def walk(
    setting: Setting,
    cuts: SharedCuts,
    reference: np.ndarray,
    scenarios: Scenarios,
    mine: np.ndarray,
    block: Block,
) -> None:
    """Walk the scenarios of `block` into `mine`, this rank's part of the records."""
    desk = new_desk(setting.problem, cuts.pool, reference)
    with compiled_by_one():
        noise = scenarios.noise(setting, block)
        walk_block(desk, noise[:0], mine[:0])
    walk_block(desk, noise, mine)


def gather(setting: Setting, count: int, block: Block, records: np.ndarray) -> None:
    """Gather all records on all nodes; the records of each rank are in place already."""
    comm = setting.comm
    counts, displs = comm.shares(count, records[0].size)
    comm.allgatherv(records[block.begin : block.end], records, counts, displs)


def refuse_failed(case: Case, records: np.ndarray) -> None:
    """Raise for the first scenario that could not continue."""
    failed = np.argwhere(records[:, :, STATUS] != OPTIMAL)
    if len(failed):
        scenario, t = (int(x) for x in failed[0])
        status = int(records[scenario, t, STATUS])
        what, rest = describe_failure(status, records[scenario, t, LEFT:DECISION])
        raise StageInfeasible(f"{case.name}: scenario {scenario}: stage {t} {what}{rest}")


def total_costs(records: np.ndarray, units: Units) -> np.ndarray:
    """Return the (S,) cost of every scenario; stages are added in their order."""
    total = np.zeros(records.shape[0])
    for t in range(records.shape[1]):
        total += records[:, t, COST]
    return total * units.money


def table_of(case: Case, units: Units, records: np.ndarray) -> dict[str, np.ndarray]:
    """Return quantities of every scenario (row) and stage (column), by name.

    A price is the price of energy in its stage, without the factor by which the stage's costs
    count.
    """
    at, x = columns_of(case), records[:, :, DECISION:]
    discount = np.array(case.discount)
    table = {"cost": records[:, :, COST] * units.money}
    step = at.deficit
    for b, (bus, end) in enumerate(zip(case.buses, endings(case), strict=True)):
        price = x[:, :, at.end + b] * (units.money / units.energy)
        table[f"spot_price{end}"] = np.divide(price, discount, out=price, where=discount > 0.0)
        steps = x[:, :, step : step + len(bus.deficit)]
        table[f"deficit{end}"] = steps.sum(axis=2) * units.energy
        step += len(bus.deficit)
    turbine = at.turbines
    for h, (name, hydro) in enumerate(zip(labels(case.hydros), case.hydros, strict=True)):
        unit = units.water[h]
        generation = np.zeros(x.shape[:2])
        for segment in hydro.segments:
            generation += x[:, :, turbine] * (unit * segment.productivity)
            turbine += 1
        table[f"storage_{name}"] = x[:, :, h] * unit
        table[f"generation_hydro_{name}"] = generation
        table[f"spill_{name}"] = x[:, :, at.spill + h] * unit
    for g, name in enumerate(labels(case.thermals)):
        table[f"generation_thermal_{name}"] = x[:, :, at.thermal + g] * units.energy
    for i, name in enumerate(labels(case.lines)):
        exchange = x[:, :, at.forward + i] - x[:, :, at.backward + i]
        table[f"exchange_{name}"] = exchange * units.energy
    return table


def endings(case: Case) -> list[str]:
    """Return, for each bus, the end of the names of its columns; a single bus needs none."""
    return [f"_{name}" for name in labels(case.buses)] if len(case.buses) > 1 else [""]


def labels(things: Sequence[Hydro | Thermal | Bus | Line]) -> list[str]:
    """Return the names of `things`; names that several things have get a number."""
    names = [thing.name for thing in things]
    return [n if names.count(n) == 1 else f"{n}_{i}" for i, n in enumerate(names)]
