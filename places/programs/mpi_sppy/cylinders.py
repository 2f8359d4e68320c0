"""``mpisppy.generic_cylinders``, unchanged; then rank 0 prints ``RESULT`` and its hub's digits."""

import json
import runpy

from mpisppy import MPI, spin_the_wheel

spin = spin_the_wheel.WheelSpinner.run


def run(self, comm_world=None):
    """Run the cylinders, and keep what the hub has found."""
    spin(self, comm_world)
    if MPI.COMM_WORLD.rank:
        return
    hub = self.spcomm.opt
    scenario = next(iter(hub.local_scenarios.values()))
    indices = scenario._mpisppy_data.nonant_indices
    told = {
        "trivial bound": hub.trivial_bound,
        "conv": hub.conv,
        "means": [scenario._mpisppy_model.xbars[i]._value for i in indices],
        "bounds": [float(self.BestOuterBound), float(self.BestInnerBound)],
    }
    print("RESULT", json.dumps(told), flush=True)


spin_the_wheel.WheelSpinner.run = run
runpy.run_module("mpisppy.generic_cylinders", run_name="__main__", alter_sys=True)
