"""The place: a Slurm of four nodes."""

from places.slurm import jobs
from places.slurm.cluster import Cluster

NODES = 4


def run_place(place, folder, stack):
    """Set up the Slurm and run all jobs; return its version."""
    cluster = Cluster(folder, NODES, stack)
    jobs.rows(cluster, place)
    return f"Slurm {cluster.run('sinfo', '--version').output.split()[-1]}"
