"""``cobre-comm status``: show the calls of the ranks of running jobs, and their waits."""
