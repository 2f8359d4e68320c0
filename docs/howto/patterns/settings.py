"""Broadcast a configuration that only rank 0 has read."""

from dataclasses import dataclass

from cobre_comm import create_communicator, objects


@dataclass
class Settings:
    """What all ranks have to know."""

    seed: int
    solver: str


with create_communicator() as comm:
    mine = Settings(seed=7, solver="highs") if comm.rank == 0 else None
    settings: Settings = objects.broadcast(comm, mine)
    print(f"rank {comm.rank}: {settings}")
