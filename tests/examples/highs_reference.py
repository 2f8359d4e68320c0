"""The reference: HiGHS solves the same programs as the example."""

import highspy
import numpy as np


def solve_highs(cost, a, row_bounds, bounds):
    """Return the status name and the objective of a linear program."""
    rows, columns = np.nonzero(a)
    return solve_entries(cost, (rows, columns, a[rows, columns]), row_bounds, bounds)


def solve_entries(cost, entries, row_bounds, bounds):
    """Do what `solve_highs` does, for a matrix given by its entries, which are sorted by row."""
    highs = highspy.Highs()
    highs.silent()
    lp = highspy.HighsLp()
    rows, columns, values = entries
    lp.num_row_, lp.num_col_ = len(row_bounds[0]), len(cost)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, bounds[0], bounds[1]
    lp.row_lower_, lp.row_upper_ = row_bounds
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    counts = np.bincount(rows, minlength=lp.num_row_)
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lp.a_matrix_.index_ = np.asarray(columns, np.int32)
    lp.a_matrix_.value_ = np.asarray(values, np.float64)
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        highs.setOptionValue(name, 1e-10)
    highs.passModel(lp)
    highs.run()
    return highs.getModelStatus().name, highs.getInfo().objective_function_value


def scenario_tree(case):
    """Return the parent, stage, opening and probability of every node; parents come first."""
    nodes = [(-1, 0, k, p) for k, p in enumerate(case.probabilities[0])]
    begin = 0
    for t in range(1, case.stages):
        end = len(nodes)
        for parent in range(begin, end):
            for k, p in enumerate(case.probabilities[t]):
                nodes.append((parent, t, k, nodes[parent][3] * p))
        begin = end
    return nodes


class Program:
    """A linear program to which columns and rows are added."""

    def __init__(self):
        self.cost, self.lower, self.upper = [], [], []
        self.row_lower, self.row_upper = [], []
        self.entries = [], [], []

    def column(self, cost, lower=0.0, upper=np.inf):
        """Add a variable; return its number."""
        for values, value in ((self.cost, cost), (self.lower, lower), (self.upper, upper)):
            values.append(value)
        return len(self.cost) - 1

    def row(self, terms, lower, upper):
        """Add a row of terms (variable, coefficient); a variable may be in several terms."""
        for column in sorted({c for c, _ in terms}):
            value = sum(v for c, v in terms if c == column)
            row = len(self.row_lower), column, value
            for values, entry in zip(self.entries, row, strict=True):
                values.append(entry)
        self.row_lower.append(lower)
        self.row_upper.append(upper)

    def solve(self):
        """Return the status name and the objective."""
        rows = np.array(self.row_lower), np.array(self.row_upper)
        columns = np.array(self.lower), np.array(self.upper)
        return solve_entries(np.array(self.cost), self.entries, rows, columns)


def add_stage(program, case, stage, before):
    """Add the stage problem of a node of the scenario tree; return its end volumes.

    `stage` is the number, opening and probability of the stage; `before` has the terms of the
    incoming volumes.
    """
    t, k, p = stage
    factor = p * case.discount[t]
    water = [[] for _ in case.hydros]
    energy = [[] for _ in case.buses]
    volumes = [program.column(0.0, hydro.vmin, hydro.vmax) for hydro in case.hydros]
    limits = []
    for h, hydro in enumerate(case.hydros):
        spill = program.column(factor * hydro.spill_cost)
        turbines = [program.column(0.0, 0.0, s.qmax[t]) for s in hydro.segments]
        for column, segment in zip(turbines, hydro.segments, strict=True):
            energy[segment.bus].append((column, segment.productivity))
        for column in [spill, *turbines]:
            water[h].append((column, 1.0))
            if hydro.downstream >= 0:
                water[hydro.downstream].append((column, -1.0))
        if hydro.water_cost is not None:
            water[h].append((program.column(factor * hydro.water_cost), -1.0))
        for limit in hydro.limits:
            terms = [(c, 1.0) for c in turbines + [spill] * limit.with_spill]
            terms.append((program.column(factor * limit.below_cost), 1.0))
            terms.append((program.column(factor * limit.above_cost), -1.0))
            limits.append((terms, limit.least[t], limit.most[t]))
    for plant in case.thermals:
        column = program.column(factor * plant.cost[t], plant.least[t], plant.capacity[t])
        energy[plant.bus].append((column, 1.0))
    for b, bus in enumerate(case.buses):
        for step in bus.deficit:
            energy[b].append((program.column(factor * step.cost, 0.0, step.depth[t]), 1.0))
        if bus.excess_cost is not None:
            energy[b].append((program.column(factor * bus.excess_cost), -1.0))
    for line in case.lines:
        there = program.column(factor * line.cost, 0.0, line.capacity[t])
        back = program.column(factor * line.cost, 0.0, line.reverse[t])
        energy[line.source] += [(there, -1.0), (back, 1.0)]
        energy[line.target] += [(there, 1.0), (back, -1.0)]
    for h, volume in enumerate(volumes):
        level = case.inflows[t][k][h] + (case.hydros[h].v0 if before is None else 0.0)
        incoming = [] if before is None else [(before[h], -1.0)]
        program.row([(volume, 1.0), *water[h], *incoming], level, level)
    for terms, demand in zip(energy, case.demand[t][k], strict=True):
        program.row(terms, demand, demand)
    for terms, least, most in limits:
        program.row(terms, least, most)
    return volumes


def extensive_form(case):
    """Return the optimum of `case`: that of one program for its whole scenario tree."""
    program, volumes = Program(), []
    for parent, *stage in scenario_tree(case):
        before = volumes[parent] if parent >= 0 else None
        volumes.append(add_stage(program, case, stage, before))
    status, value = program.solve()
    assert status == "kOptimal", status
    return value
