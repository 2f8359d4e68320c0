"""How the ranks of one machine meet: create, attach, unlink the name, begin.

Rank 0 creates the segment, locks its byte, writes the header and publishes it; the others open the
name until it is there, check it, lock their byte and register. When all have attached, rank 0
removes the name and says READY: from then on no crash can leak the segment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from cobre_kernels.machine import access
from cobre_kernels.machine.record import WORD_BYTES, View
from cobre_kernels.shm import control
from cobre_kernels.shm.control import CONTROL

from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.ownership import check_owner, is_locked, remove_stale
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.config import ShmConfig
from cobre_comm.errors import AllocationFailed, InitializationFailed

START_TIMEOUT_S = 60.0  # ranks start apart: interpreters, imports, a loaded machine
POLL_S = 0.0005
LONGEST_POLL_S = 0.01
_UNFINISHED = control.UNFINISHED.to_bytes(WORD_BYTES, "little")


def rendezvous(
    config: ShmConfig, buffer_bytes: int, leader_lives: Callable[[], bool] = lambda: True
) -> Segment:
    """Meet the other ranks; return the segment that all of them have mapped.

    ``leader_lives`` tells, where that is known, whether rank 0 can still come.

    Raises
    ------
    InitializationFailed
        If the name is in use or foreign, its header is another one, or ranks do not come.
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


def _poll(config: ShmConfig, done: Callable[[], bool], failure: Callable[[], str]) -> None:
    """Ask until ``done``; after the limit, fail with what ``failure`` says."""
    deadline = time.monotonic() + _limit_s(config)
    pause = POLL_S
    while not done():
        if time.monotonic() > deadline:
            raise InitializationFailed("shm", failure())
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_POLL_S)


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
        # Release: pairs with the load of published in _inspect; publishes the words above.
        _store(words.published, control.MAGIC)
        _await_followers(config, segment)
    except BaseException:
        segment.close()  # and with it the lock, so that who waits for READY learns of the end
        raise
    finally:
        segments.unlink(config.name)
    # Release: pairs with the load of ready in _follow.
    _store(words.ready, 1)
    return segment


def _await_followers(config: ShmConfig, segment: Segment) -> None:
    def missing() -> list[int]:
        return [r for r in range(config.size) if _load(_words(segment).blocks[r].pid) == 0]

    def all_here() -> bool:
        absent = missing()
        for rank in range(1, config.size):
            if rank not in absent and not is_locked(segment.fd, rank):
                raise InitializationFailed("shm", f"rank {rank} attached and then ended")
        return not absent

    def failure() -> str:
        late = ", ".join(str(r) for r in missing())
        return (
            f"ranks {late} of {config.size} did not attach to {config.name} within "
            f"{_limit_s(config):g} s; start them with COBRE_SHM_NAME={config.name}"
        )

    _poll(config, all_here, failure)


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
    deadline = time.monotonic() + _limit_s(config)
    pause = POLL_S
    while True:
        found, why = _try_attach(config)
        if found is not None:
            return found
        if not leader_lives():
            raise InitializationFailed("shm", "rank 0 ended before all ranks had attached")
        if time.monotonic() > deadline:
            raise InitializationFailed(
                "shm",
                f"{why} for {_limit_s(config):g} s; is rank 0 started with "
                f"COBRE_SHM_NAME={config.name}?",
            )
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_POLL_S)


def _try_attach(config: ShmConfig) -> tuple[Segment | None, str]:
    """Attach, or tell what is still missing."""
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
        if not _inspect(config, segment):
            return None, f"the owner of segment {config.name} is not ready"
        _register(config, segment)
        fd = -1
        return segment, ""
    finally:
        if fd >= 0:
            os.close(fd)


def _inspect(config: ShmConfig, segment: Segment) -> bool:
    """Check a published header; False if there is none yet."""
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

    def begun() -> bool:
        if _load(_words(segment).ready):
            return True
        if not is_locked(segment.fd, 0) and not _load(_words(segment).ready):
            raise InitializationFailed("shm", "rank 0 ended before all ranks had attached")
        return False

    _poll(config, begun, lambda: f"rank 0 did not begin within {_limit_s(config):g} s")
