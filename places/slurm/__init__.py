"""A Slurm of several virtual nodes on one machine, on which jobs run and faults strike."""
