"""A Slurm of several virtual nodes on one machine, with jobs and faults on it."""
