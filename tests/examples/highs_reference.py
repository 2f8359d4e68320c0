"""The reference: the same programs solved by HiGHS."""

import highspy
import numpy as np


def solve_highs(cost, a, row_bounds, bounds):
    """Return the status name and the objective of a linear program."""
    highs = highspy.Highs()
    highs.silent()
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = a.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, bounds[0], bounds[1]
    lp.row_lower_, lp.row_upper_ = row_bounds
    rows, columns = np.nonzero(a)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    counts = np.bincount(rows, minlength=a.shape[0])
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lp.a_matrix_.index_ = columns.astype(np.int32)
    lp.a_matrix_.value_ = a[rows, columns]
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        highs.setOptionValue(name, 1e-10)
    highs.passModel(lp)
    highs.run()
    return highs.getModelStatus().name, highs.getInfo().objective_function_value


def scenario_tree(case):
    """Return parent, stage, opening and probability of every node, parents first."""
    nodes = [(-1, 0, k, p) for k, p in enumerate(case.probabilities[0])]
    begin = 0
    for t in range(1, case.stages):
        end = len(nodes)
        for parent in range(begin, end):
            for k, p in enumerate(case.probabilities[t]):
                nodes.append((parent, t, k, nodes[parent][3] * p))
        begin = end
    return nodes


def extensive_form(case):
    """Return the optimum of `case` from the program of its whole scenario tree."""
    count = len(case.hydros)
    segments = [(h, s) for h, hydro in enumerate(case.hydros) for s in hydro.segments]
    width = 2 * count + len(segments) + len(case.thermals) + 1
    nodes = scenario_tree(case)
    a = np.zeros((len(nodes) * (count + 1), len(nodes) * width))
    right = np.zeros(a.shape[0])
    cost, lower, upper = np.zeros(a.shape[1]), np.zeros(a.shape[1]), np.full(a.shape[1], np.inf)
    for i, (parent, t, k, p) in enumerate(nodes):
        row, base = i * (count + 1), i * width
        block = a[row : row + count + 1]
        spill, thermal = base + count + len(segments), base + 2 * count + len(segments)
        outflows = [(base + count + j, h) for j, (h, _) in enumerate(segments)]
        outflows += [(spill + h, h) for h in range(count)]
        for h, hydro in enumerate(case.hydros):
            block[h, base + h] = 1.0
            lower[base + h], upper[base + h] = hydro.vmin, hydro.vmax
            cost[spill + h] = p * hydro.spill_cost
            right[row + h] = case.inflows[t][k][h] + (hydro.v0 if parent < 0 else 0.0)
            if parent >= 0:
                block[h, parent * width + h] = -1.0
        for column, h in outflows:
            block[h, column] += 1.0
            if case.hydros[h].downstream >= 0:
                block[case.hydros[h].downstream, column] -= 1.0
        for j, (_, segment) in enumerate(segments):
            block[count, base + count + j] = segment.productivity
            upper[base + count + j] = segment.qmax
        for g, plant in enumerate(case.thermals):
            cost[thermal + g], upper[thermal + g] = p * plant.cost[t], plant.capacity
        block[count, thermal : base + width] = 1.0
        cost[base + width - 1] = p * case.deficit_cost
        right[row + count] = case.demand[t][k]
    status, value = solve_highs(cost, a, (right, right), (lower, upper))
    assert status == "kOptimal", status
    return value
