"""A checkpoint on disk: the file is replaced as a whole, and verified before it is used."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from files import replacing

from checkpoint.header import MAGIC, VERSION, CheckpointError, Header, decode

PIECE = 1 << 20
"""So many bytes are read and hashed at a time."""
LINE = 1 << 24
"""The most bytes that the header may have."""


def write_checkpoint(path: Path, header: Header, arrays: Iterable[np.ndarray]) -> None:
    """Replace `path` by a checkpoint of `arrays`: the file is always the old one or the new one."""
    with replacing(path) as file:
        digest = hashlib.sha256()
        _put(file, digest, header.encode())
        for array in arrays:
            _put(file, digest, array.tobytes())
        file.write(digest.digest())


def _put(file: BinaryIO, digest: "hashlib._Hash", data: bytes) -> None:
    digest.update(data)
    file.write(data)


def verify(path: Path, fields: int) -> Header:
    """Return the header of the checkpoint `path`, after checking the digest of the whole file.

    Raises
    ------
    CheckpointError
        If the file is not a whole checkpoint of this version, or cannot be read.
    FileNotFoundError
        If there is no such file.
    """
    try:
        with path.open("rb") as file:
            header = read_header(file)
            begin = file.tell()
            expected = begin + 8 * header.numbers(fields) + hashlib.sha256().digest_size
            size = path.stat().st_size
            if size < expected:
                raise CheckpointError(f"is cut short: it has {size} of {expected} bytes")
            if size > expected or not _is_whole(file):
                raise CheckpointError("is damaged: its bytes are not those that were written")
    except CheckpointError as error:
        raise CheckpointError(
            f"the checkpoint {path} {error}; delete it to begin anew, or name another file"
        ) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error.strerror}") from None
    return header


def read_header(file: BinaryIO) -> Header:
    """Return the header; after that, `file` is at the beginning of the numbers."""
    first = file.readline(len(MAGIC) + 24)
    if not first.startswith(MAGIC + b" ") and not (MAGIC + b" ").startswith(first):
        raise CheckpointError("is no checkpoint of this program")
    if not first.endswith(b"\n"):
        raise CheckpointError("is cut short: it has no header")
    version = first[len(MAGIC) :].strip().decode(errors="replace")
    if version != str(VERSION):
        raise CheckpointError(f"has version {version}, this program reads version {VERSION}")
    line = file.readline(LINE)
    if not line.endswith(b"\n"):
        raise CheckpointError("is cut short: it has no header")
    return decode(line)


def _is_whole(file: BinaryIO) -> bool:
    """Return whether the file ends with the SHA-256 of all bytes before."""
    file.seek(0, os.SEEK_END)
    left = file.tell() - hashlib.sha256().digest_size
    file.seek(0)
    digest = hashlib.sha256()
    while left:
        data = file.read(min(PIECE, left))
        if not data:
            return False
        digest.update(data)
        left -= len(data)
    return digest.digest() == file.read()
