"""The place: a Slurm of four nodes."""

from places.slurm import jobs
from places.slurm.cluster import Cluster

NODES = 4


def run_place(place, folder, stack):
    """Set it up and run all jobs; return the versions."""
    cluster = Cluster(folder, NODES, stack)
    jobs.rows(cluster, place)
    return f"Slurm {cluster.run('sinfo', '--version').output.split()[-1]}"
