"""Checks that one rank raises, and that the other ranks get an error about that rank."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from cobre_comm.contract.communicator import Communicator
from cobre_comm.errors import CollectiveFailed


@contextlib.contextmanager
def rank_raises(
    comm: Communicator,
    rank: int,
    expected: type[BaseException] | tuple[type[BaseException], ...],
    match: str | None = None,
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Check that a block raises on one rank, and that every other rank learns that it is lost.

    The rank that raises closes its communicator, as a program does at its end. The other ranks get
    their error in a collective of the block, or in a barrier after the block. Then the communicator
    is broken, so the block is the last thing that a test does with the communicator.

    Parameters
    ----------
    comm : Communicator
        The communicator of the test; all its ranks enter the block.
    rank : int
        The rank that raises.
    expected : type or tuple of types
        The exception that this rank raises.
    match : str, optional
        A regular expression that the text of this exception contains.

    Yields
    ------
    pytest.ExceptionInfo
        As ``pytest.raises`` yields it: on that rank for the expected exception, on the other ranks
        for a ``CollectiveFailed`` that names that rank.

    Examples
    --------
    >>> from cobre_comm import BackendKind, create_communicator
    >>> from cobre_comm.testing import rank_raises
    >>> with create_communicator(BackendKind.LOCAL) as comm:
    ...     with rank_raises(comm, 0, OSError, match="no inflows") as caught:
    ...         raise OSError("no inflows")
    >>> caught.value
    OSError('no inflows')
    """
    __tracebackhide__ = True
    caught: Any
    if comm.rank == rank:
        with pytest.raises(expected, match=match) as caught:
            yield caught
        comm.close()
        return
    with pytest.raises(CollectiveFailed) as caught:  # noqa: PT012  # in the block, or after it
        yield caught
        comm.barrier()
    lost = caught.value.ranks
    assert lost == (rank,), f"rank {rank} should be lost, not {lost}: {caught.value}"
