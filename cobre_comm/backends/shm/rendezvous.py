"""Theory of operation of the shm rendezvous: how the ranks of one machine find each other.

The ranks know a name and their number. Each rank holds a record lock on the byte of its number, and
the kernel drops the lock when the rank dies: so each wait sees at once that it is in vain.

========= ======= ============================================= ==================================
step      rank    what it does                                  what can fail
========= ======= ============================================= ==================================
CREATE    0       makes the file (O_EXCL, 0600), locks byte 0,  a living rank has the name: raise;
                  stores UNFINISHED in PUBLISHED                a dead one left it: removed, again
RESERVE   0       takes all pages                               no memory: raise
PUBLISH   0       writes the header, then MAGIC in PUBLISHED    --
OPEN      others  opens the name, again and again               not there, or byte 0 not locked:
                                                                again, until the limit
CHECK     others  reads owner and mode, waits for MAGIC, reads  foreign, another version or size:
                  version and size                              raise; still UNFINISHED: again
REGISTER  others  locks its byte, stores its PID                locked already: a second rank of
                                                                that number, raise
UNLINK    0       removes the name when all have registered     a registered rank lost its lock,
                                                                or the limit: raise
READY     0       stores 1 in READY                             --
START     others  see READY                                     byte 0 not locked, or the limit:
                                                                raise
========= ======= ============================================= ==================================

Rank 0 also removes the name when it raises. From UNLINK on no crash can leak the segment. MAGIC,
PID and READY are stored with release, loaded with acquire: each publishes what was written before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from cobre_kernels.machine import access
from cobre_kernels.machine.record import WORD_BYTES, View
from cobre_kernels.shm import control
from cobre_kernels.shm.control import CONTROL

from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.ownership import check_owner, is_locked, remove_stale
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.config import ShmConfig
from cobre_comm.errors import AllocationFailed, InitializationFailed
from cobre_comm.running_time import running_s

START_TIMEOUT_S = 60.0  # ranks start apart: interpreters, imports, a loaded machine
POLL_S = 0.0005
LONGEST_POLL_S = 0.01
LEADER_LOST = "rank 0 ended before all ranks had attached"
_UNFINISHED = control.UNFINISHED.to_bytes(WORD_BYTES, "little")

T = TypeVar("T")


def rendezvous(
    config: ShmConfig, buffer_bytes: int, leader_lives: Callable[[], bool] = lambda: True
) -> Segment:
    """Find the other ranks; return the segment that all of them have mapped.

    Parameters
    ----------
    config : ShmConfig
        This rank, and the name of the segment.
    buffer_bytes : int
        Collective buffer of each rank; rank 0's value holds.
    leader_lives : callable, optional
        Returns whether rank 0 can still come, where that is known before the segment is there.

    Raises
    ------
    InitializationFailed
        If the name is in use or foreign, its header is another one, or ranks are missing or lost.
    """
    try:
        if config.rank == 0:
            return _lead(config, buffer_bytes)
        return _follow(config, leader_lives)
    except AllocationFailed as error:
        raise InitializationFailed("shm", error) from error
    except OSError as error:
        raise InitializationFailed("shm", f"segment {config.name}: {error}") from error


def _words(segment: Segment) -> View:
    """Return the control region; its attributes are the addresses of its shared words."""
    return CONTROL.at(segment.address)


def _load(address: int) -> int:
    return int(access.load_word_kernel.call(address))


def _store(address: int, value: int) -> None:
    access.store_word_kernel.call(address, access.Store(value))


def _limit_s(config: ShmConfig) -> float:
    return float("inf") if config.timeout_s == 0 else max(config.timeout_s, START_TIMEOUT_S)


def _poll(config: ShmConfig, attempt: Callable[[], T | None], failure: Callable[[], str]) -> T:
    """Try again until an attempt returns something true; after the limit, raise ``failure()``."""
    deadline = running_s() + _limit_s(config)
    pause_s = POLL_S
    while not (result := attempt()):
        if running_s() > deadline:
            raise InitializationFailed("shm", failure())
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_POLL_S)
    return result


def _lead(config: ShmConfig, buffer_bytes: int) -> Segment:
    nbytes = control.buffers_offset(config.size) + config.size * buffer_bytes
    segment = _create_or_replace(config, nbytes)
    try:
        words = _words(segment)
        _store(words.version, control.LAYOUT_VERSION)
        _store(words.size, config.size)
        _store(words.buffer_bytes, buffer_bytes)
        _store(words.owner_pid, os.getpid())
        _store(words.blocks[0].pid, os.getpid())
        # Release: pairs with the load of published in _is_published; publishes the words above.
        _store(words.published, control.MAGIC)
        _await_followers(config, segment)
    except BaseException:
        segment.close()  # drops the lock, so that ranks that wait for READY see that it is in vain
        raise
    finally:
        segments.unlink(config.name)
    # Release: pairs with the load of ready in _await_ready.
    _store(words.ready, 1)
    return segment


def _await_followers(config: ShmConfig, segment: Segment) -> None:
    def missing() -> list[int]:
        return [r for r in range(config.size) if _load(_words(segment).blocks[r].pid) == 0]

    def all_registered() -> bool:
        absent = missing()
        for rank in range(1, config.size):
            if rank not in absent and not is_locked(segment.fd, rank):
                raise InitializationFailed("shm", f"rank {rank} attached and then ended", [rank])
        return not absent

    def failure() -> str:
        late = ", ".join(str(r) for r in missing())
        return (
            f"ranks {late} of {config.size} did not attach to {config.name} within "
            f"{_limit_s(config):g} s; start them with COBRE_SHM_NAME={config.name}"
        )

    _poll(config, all_registered, failure)


def _create_or_replace(config: ShmConfig, nbytes: int) -> Segment:
    for _ in range(3):
        try:
            return segments.create(
                config.name, nbytes, owned=_UNFINISHED, interleave=config.numa_interleave
            )
        except FileExistsError:
            remove_stale(config)
    raise InitializationFailed("shm", f"segment {config.name} comes back as soon as it is removed")


def _follow(config: ShmConfig, leader_lives: Callable[[], bool]) -> Segment:
    missing = ""

    def attach() -> Segment | None:
        nonlocal missing
        segment, missing = _try_attach(config)
        if segment is None and not leader_lives():
            raise InitializationFailed("shm", LEADER_LOST, [0])
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
    """OPEN, CHECK and REGISTER; return the segment, or what is still missing."""
    try:
        fd = segments.open_existing(config.name)
    except FileNotFoundError:
        return None, f"segment {config.name} does not exist"
    segment = None
    try:
        check_owner(config, fd)
        nbytes = os.fstat(fd).st_size
        if nbytes < control.buffers_offset(config.size) or not is_locked(fd, 0):
            return None, f"segment {config.name} has no living owner"
        segment = Segment(fd, nbytes)
        if not _is_published(config, segment):
            return None, f"the owner of segment {config.name} is not ready"
        _register(config, segment)
        fd = -1
        return segment, ""
    finally:
        if fd >= 0:
            os.close(fd)


def _is_published(config: ShmConfig, segment: Segment) -> bool:
    """Check a published header; return False if there is none yet."""
    published = _load(_words(segment).published)
    if published == control.UNFINISHED:
        return False
    if published != control.MAGIC:
        raise InitializationFailed("shm", f"{config.name} is not a segment of cobre_comm")
    version, size = _load(_words(segment).version), _load(_words(segment).size)
    if version != control.LAYOUT_VERSION:
        raise InitializationFailed(
            "shm",
            f"segment {config.name} has layout version {version}, this cobre_comm has "
            f"{control.LAYOUT_VERSION}; use one version for all ranks",
        )
    if size != config.size:
        raise InitializationFailed(
            "shm",
            f"rank 0 made segment {config.name} for {size} ranks, this rank was told "
            f"{config.size}; check COBRE_SHM_SIZE",
        )
    return True


def _register(config: ShmConfig, segment: Segment) -> None:
    own_pid = _words(segment).blocks[config.rank].pid
    if not segment.lock(config.rank) or _load(own_pid) != 0:
        raise InitializationFailed(
            "shm",
            f"rank {config.rank} of {config.name} is already attached, as process "
            f"{_load(own_pid)}; check COBRE_SHM_RANK",
        )
    # Release: pairs with the load of pid in _await_followers; the lock is held from here on.
    _store(own_pid, os.getpid())


def _await_ready(config: ShmConfig, segment: Segment) -> None:
    def is_ready() -> bool:
        if _load(_words(segment).ready):
            return True
        if not is_locked(segment.fd, 0) and not _load(_words(segment).ready):
            raise InitializationFailed("shm", LEADER_LOST, [0])
        return False

    _poll(config, is_ready, lambda: f"rank 0 did not start within {_limit_s(config):g} s")
