"""Collectives over several nodes: shared memory within a node, MPI among the nodes."""
