"""``cobre-comm status``: what the ranks of running jobs do, and whom they wait for."""
