"""A Slurm of several virtual nodes on one machine, and what befalls jobs on it."""
