"""Theory of operation of the shm rendezvous: how the ranks of one machine find each other.

Each rank knows the name of the segment and its own number, and holds a record lock on the byte with
that number. When the rank dies, the system drops the lock, so ranks that wait for the rank see its
death at once.

========= ======= ============================================= ==================================
step      rank    what it does                                  what can fail
========= ======= ============================================= ==================================
CREATE    0       makes the file (O_EXCL, 0600), locks byte 0,  a living rank has the name: raise;
                  stores UNFINISHED in PUBLISHED                a dead one left it: removed, again
RESERVE   0       finds room for all pages, takes its own       no memory: raise
PUBLISH   0       writes the header, then MAGIC in PUBLISHED    --
OPEN      others  opens the name, again and again               not there, or byte 0 not locked:
                                                                again, until the limit
CHECK     others  reads owner and mode, waits for MAGIC, reads  foreign, another version or size:
                  version and size                              raise; still UNFINISHED: again
REGISTER  others  takes its own pages, locks its byte, stores   no memory; locked already: a second
                  its PID                                       rank of that number: raise
UNLINK    0       removes the name when all have registered     a registered rank lost its lock,
                                                                or the limit: raise
READY     0       stores 1 in READY                             --
START     others  see READY                                     byte 0 not locked, or the limit:
                                                                raise
========= ======= ============================================= ==================================

If rank 0 raises, it removes the name too. From UNLINK on no crash can leak the segment. MAGIC, PID
and READY are stored with release and loaded with acquire, so each of them publishes what its rank
has written before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.shm import control

from cobre_comm.backends.shm import header
from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.ownership import (
    check_owner,
    describe_foreign,
    is_locked,
    remove_stale,
    take_ownership,
)
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.config import ShmConfig
from cobre_comm.errors import AllocationFailed, InitializationFailed, named
from cobre_comm.journal.shown import load, store
from cobre_comm.system.descriptor import Descriptor
from cobre_comm.system.running_time import running_s

START_TIMEOUT_S = 60.0  # on a loaded machine, some ranks start much later than others
POLL_S = 0.0005
LONGEST_POLL_S = 0.01
LEADER_LOST = "rank 0 ended before all ranks had attached"
_UNFINISHED = control.UNFINISHED.to_bytes(WORD_BYTES, "little")

T = TypeVar("T")


def rendezvous(config: ShmConfig, buffer_bytes: int) -> Segment:
    """Find the other ranks; return the segment that all of them have mapped.

    Each rank's collective buffer has the ``buffer_bytes`` of rank 0. ``InitializationFailed`` is
    raised if the name is in use or of another user, if the segment is of another version or size,
    or if ranks are missing or lost.
    """
    try:
        if config.rank == 0:
            return _lead(config, buffer_bytes)
        return _follow(config)
    except AllocationFailed as error:
        raise InitializationFailed("shm", error) from error
    except OSError as error:
        raise InitializationFailed("shm", f"segment {config.name}: {error}") from error


def _limit_s(config: ShmConfig) -> float:
    return float("inf") if config.timeout_s == 0 else max(config.timeout_s, START_TIMEOUT_S)


def _poll(config: ShmConfig, attempt: Callable[[], T | None], failure: Callable[[], str]) -> T:
    """Call ``attempt`` until its result is true; after the limit, raise ``failure()``."""
    deadline = running_s() + _limit_s(config)
    pause_s = POLL_S
    while not (result := attempt()):
        if running_s() > deadline:
            raise InitializationFailed("shm", failure())
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_POLL_S)
    return result


def _lead(config: ShmConfig, buffer_bytes: int) -> Segment:
    file = _create_or_replace(config)
    try:
        nbytes = header.segment_bytes(config.size, buffer_bytes)
        segment = segments.extend(
            file,
            nbytes,
            header.own_bytes(0, config.size, buffer_bytes),
            begins=_UNFINISHED,
            interleave=config.numa_interleave,
        )
        header.register(config, segment)
        header.publish(config, segment, buffer_bytes)
        _await_followers(config, segment)
        segments.unlink(config.name)  # while this rank has the lock, the name leads to this file
    except BaseException:
        segments.unlink(config.name)
        file.close()  # drops the lock, so that ranks in START stop waiting
        raise
    # Release: pairs with the load of ready in _await_ready.
    store(header.words(segment).ready, 1)
    return segment


def _await_followers(config: ShmConfig, segment: Segment) -> None:
    def missing() -> list[int]:
        return [r for r in range(config.size) if load(header.words(segment).blocks[r].pid) == 0]

    def all_registered() -> bool:
        absent = missing()
        for rank in range(1, config.size):
            if rank not in absent and not is_locked(segment.fd, rank):
                raise InitializationFailed("shm", f"rank {rank} attached and then ended", [rank])
        return not absent

    def failure() -> str:
        return (
            f"{named(missing())} of {config.size} did not attach to {config.name} within "
            f"{_limit_s(config):g} s; start them with COBRE_SHM_NAME={config.name}"
        )

    _poll(config, all_registered, failure)


def _create_or_replace(config: ShmConfig) -> Descriptor:
    """Do CREATE; return a new file of this name, with byte 0 locked."""
    for _ in range(3):
        try:
            file = segments.create_named(config.name)
        except FileExistsError:
            remove_stale(config)
            continue
        try:
            if take_ownership(file.number):
                return file
        except BaseException:
            segments.unlink(config.name)
            file.close()
            raise
        file.close()
    raise InitializationFailed("shm", f"segment {config.name} comes back as soon as it is removed")


def _follow(config: ShmConfig) -> Segment:
    missing = ""

    def attach() -> Segment | None:
        nonlocal missing
        segment, missing = _try_attach(config)
        return segment

    segment = _poll(
        config,
        attach,
        lambda: (
            f"{missing} for {_limit_s(config):g} s; is rank 0 started with "
            f"COBRE_SHM_NAME={config.name}?"
        ),
    )
    try:
        _await_ready(config, segment)
    except BaseException:
        segment.close()  # drops the lock, so that rank 0 sees the loss
        raise
    return segment


def _try_attach(config: ShmConfig) -> tuple[Segment | None, str]:
    """Do OPEN, CHECK and REGISTER; return the segment, or None and the reason to try again."""
    try:
        file = segments.open_named(config.name)
    except FileNotFoundError:
        return None, f"segment {config.name} does not exist"
    except PermissionError:
        raise describe_foreign(config.name) from None
    is_registered = False
    try:
        check_owner(config.name, file.number)
        nbytes = os.fstat(file.number).st_size
        if nbytes < control.buffers_offset(config.size) or not is_locked(file.number, 0):
            return None, f"segment {config.name} has no living owner"
        segment = Segment(file, nbytes)
        if not header.is_published(config, segment):
            return None, f"the owner of segment {config.name} is not ready"
        buffer_bytes = load(header.words(segment).buffer_bytes)
        segment.reserve(header.own_bytes(config.rank, config.size, buffer_bytes))
        header.register(config, segment)
        is_registered = True
        return segment, ""
    finally:
        if not is_registered:
            file.close()


def _await_ready(config: ShmConfig, segment: Segment) -> None:
    def is_ready() -> bool:
        if load(header.words(segment).ready):
            return True
        if not is_locked(segment.fd, 0) and not load(header.words(segment).ready):
            raise InitializationFailed("shm", LEADER_LOST, [0])
        return False

    _poll(config, is_ready, lambda: f"rank 0 did not start within {_limit_s(config):g} s")
