"""One collective from Python: our call, the library's and plain copies take turns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.plan import Options
from bench.ranks.sides import InPlace
from bench.ranks.timing import measure, timed
from bench.ranks.work import Case, Work


@dataclass(frozen=True)
class Collective:
    """A measurement of this program: a case, and the libraries that take turns."""

    case: Case
    sides: tuple[str, ...]
    fresh: bool = False  # whether all ranks write new data between calls
    interface: str = ""  # the network interface that each call must use; empty if it may be any
    in_place: bool = False  # whether our sides have data and results in regions


def take(world, asked: Collective, options: Options) -> dict:
    """Return the samples of each side, with results that were verified."""
    works = {}
    for name in asked.sides:
        side = world.side(name)
        works[name] = Work(
            asked.case, InPlace(side.comm) if asked.in_place else side, world, asked.fresh
        )
    found = measure({name: work.timed for name, work in works.items()}, world.slowest, options)
    for work in works.values():
        if asked.interface:
            check_interface(asked, work, world)
        work.verify()
    return found


def check_interface(asked: Collective, work: Work, world) -> None:
    """Check, by the counters of the interface, that one call moves its bytes through it."""
    call = work.prepare(1)
    before = interface_bytes(asked.interface)
    world.slowest(timed(call))
    after = interface_bytes(asked.interface)
    moved = world.slowest(max(b - a for a, b in zip(before, after, strict=True)))
    if moved < asked.case.nbytes:
        raise AssertionError(f"{asked.case.label}: {moved:.0f} bytes through {asked.interface}")


def interface_bytes(name: str) -> tuple[int, int]:
    """Return the bytes (received, sent) by an interface of this process's network namespace."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        interface, _, numbers = line.partition(":")
        if interface.strip() == name:
            fields = numbers.split()
            return int(fields[0]), int(fields[8])
    raise ValueError(f"no interface {name}")
