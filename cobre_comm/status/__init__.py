"""``cobre-comm status``: shows the calls of the ranks of running jobs, and whom they wait for."""
