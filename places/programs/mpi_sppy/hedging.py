"""Progressive hedging of mpi-sppy's farmer on all ranks; then rank 0 prints ``RESULT`` and JSON."""

import json

from mpisppy.opt.ph import PH
from mpisppy.tests.examples import farmer

SCENARIOS, ITERATIONS = 9, 10
OPTIONS = {
    "solver_name": "appsi_highs", "PHIterLimit": ITERATIONS, "defaultPHrho": 1.0,
    "convthresh": -1e-8, "verbose": False, "display_progress": False, "display_timing": False,
    "iter0_solver_options": {"threads": 1}, "iterk_solver_options": {"threads": 1},
    "linearize_proximal_terms": True, "proximal_linearization_tolerance": 1e-1,
    "initial_proximal_cut_count": 2,
}  # fmt: skip

hedging = PH(
    OPTIONS,
    [f"scen{i}" for i in range(SCENARIOS)],
    farmer.scenario_creator,
    farmer.scenario_denouement,
    scenario_creator_kwargs={"num_scens": SCENARIOS},
)
conv, expected, trivial = hedging.ph_main()
scenario = next(iter(hedging.local_scenarios.values()))
means = [
    scenario._mpisppy_model.xbars[i]._value for i in scenario._mpisppy_data.nonant_indices
]  # fmt: skip
if hedging.cylinder_rank == 0:
    told = {"trivial bound": trivial, "expected value": expected, "conv": conv, "means": means}
    print("RESULT", json.dumps(told), flush=True)
