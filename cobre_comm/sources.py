"""Checks of versions: the two packages of a process are of one version, and so are all ranks.

Versions are compared by hashes of the sources. A version number would not suffice, because two
commits of a checkout may have the same number.
"""

from __future__ import annotations

import functools
import pathlib
import sys
from typing import NamedTuple

import cobre_kernels

_PACKAGE = pathlib.Path(__file__).resolve().parent
_PLACE = _PACKAGE.parent
# The folders that are hashed. A rank runs the code of these folders while it meets other ranks and
# communicates, so this code has to be the same on all ranks. Other code may differ between ranks:
# that of launchers, of their reports and of tests.
_OF_RANKS = ("arguments", "backends", "contract", "jit", "journal", "mpi4py", "system")


@functools.cache
def check_halves() -> None:
    """Raise ``ImportError`` if ``cobre_kernels`` is of another version than this package.

    Python looks for each of the two packages separately. In a folder with a clone, it may find this
    package in the clone, and ``cobre_kernels`` in an installed wheel.
    """
    theirs = pathlib.Path(cobre_kernels.__file__).resolve().parent
    beside = _PLACE / "cobre_kernels", _PLACE / "kernels" / "cobre_kernels"
    if theirs in beside or any(map(_is_the_same, beside)):
        return
    raise ImportError(
        f"cobre_comm of {_PLACE} cannot run with cobre_kernels of {theirs.parent}, which is of "
        f"another version; start Python in another folder than {_PLACE}, take that folder "
        f"off PYTHONPATH, or install what is there: pip install {_PLACE}"
    )


def _is_the_same(folder: pathlib.Path) -> bool:
    """Whether a folder has the sources of the ``cobre_kernels`` that Python has found."""
    try:
        from cobre_kernels.machine.version import hash_of, source_hash, sources_of
    except ImportError:  # another version, without these names
        return False
    return folder.is_dir() and bool(hash_of(sources_of(folder)) == source_hash())


class Sources(NamedTuple):
    """What ranks tell each other when they meet: the hash and the folder of their sources."""

    hash: int  # positive, of 63 bits
    place: bytes  # of fixed length, padded with zeros

    def __str__(self) -> str:
        return f"cobre_comm of {self.place.rstrip(bytes(1)).decode(errors='replace')}"

    def against(self, own_rank: int, other: Sources, rank: int) -> str:
        """Return a sentence if the sources of another rank differ; "" if they are the same."""
        if other.hash == self.hash:
            return ""
        return (
            f"rank {rank} runs the {other}, rank {own_rank} runs the {self}, which is another "
            "version; use one version for all ranks"
        )


@functools.cache
def own_sources() -> Sources:
    """Return the sources of this process, to be compared with those of other ranks."""
    from cobre_kernels.machine.version import blake2b, hash_of, source_hash, sources_of
    from cobre_kernels.shm.control import PLACE_BYTES

    ours = sources_of(_PACKAGE, _OF_RANKS)
    told = (
        f"{source_hash()} {hash_of(ours)}" if ours else sys.modules[__package__].__version__
    )  # there are no files to hash if the package is in a zip
    whole = blake2b(told.encode(), digest_size=32).digest()
    place = f"{_PLACE} (sources {whole.hex()[:8]})".encode()[-PLACE_BYTES:]
    return Sources(int.from_bytes(whole[:8]) >> 1, place.ljust(PLACE_BYTES, b"\0"))
