"""objects: pickled and sent from one rank or from all; arrays in an object are sent unpickled."""

import numpy as np

from cobre_comm import objects
from cobre_comm.testing.cases.case import QUICK, Case
from cobre_comm.testing.cases.raised import raises
from cobre_comm.testing.cases.reference import block


def thing(rank, seed):
    """Return an object of several parts; their number and lengths depend on the rank."""
    arrays = [block("f8", rank, 7 * number + rank, seed) for number in range(rank % 3 + 1)]
    return {"rank": rank, "words": ["a"] * rank, "arrays": arrays, "empty": np.zeros(0, "i2")}


def check_thing(found, rank, seed):
    expected = thing(rank, seed)
    for array, right in zip(found.pop("arrays"), expected.pop("arrays"), strict=True):
        assert (array.dtype, array.tobytes()) == (right.dtype, right.tobytes())
        array += 1.0  # a copy, and writable
    assert found.pop("empty").dtype == expected.pop("empty").dtype
    assert found == expected


def broadcast(comm):
    for root in range(comm.size):
        own = thing(root, 5) if comm.rank == root else None
        found = objects.broadcast(comm, own, root)
        assert (found is own) == (comm.rank == root)
        check_thing(found, root, 5)


def everyones(comm):
    for seed in range(2):
        found = objects.allgather(comm, thing(comm.rank, seed))
        assert len(found) == comm.size
        for rank, each in enumerate(found):
            check_thing(each, rank, seed)


def only_root_gets(comm):
    for root in range(comm.size):
        found = objects.gather(comm, (comm.rank, root), root)
        assert found == ([(r, root) for r in range(comm.size)] if comm.rank == root else None)


def cannot_be_pickled(comm):
    """All ranks are told which rank cannot pickle, and why; the communicator stays usable."""
    last = comm.size - 1
    for call in (objects.broadcast, objects.gather, objects.allgather):
        own = (lambda: None) if comm.rank == last else comm.rank
        root = [] if call is objects.allgather else [last]
        said = str(raises(TypeError, call, comm, own, *root))
        assert f"rank {last} cannot pickle" in said
        assert "lambda" in said
    assert objects.broadcast(comm, "still usable") == "still usable"


class Unpicklable:
    """An object whose pickling raises an exception that is hard to put into words."""

    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        raise self.error


class Unloadable(Unpicklable):
    """An object that pickles, and raises when it is unpickled."""

    def __reduce__(self):
        return _raise, (self.error.args,)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def _raise(args):
    raise ValueError(*args)


ODD_NAME = b"caf\xe9".decode(errors="surrogateescape")


def errors_that_are_hard_to_tell(comm):
    """An error with an odd text is readable on all ranks, and the communicator stays usable."""
    last = comm.size - 1
    for own, words in (
        (Unpicklable(ValueError(ODD_NAME)), "cannot pickle its object: ValueError: caf\\udce9"),
        (Unpicklable(Mute()), "cannot pickle its object: Mute: <str() raised RuntimeError>"),
        (Unloadable(ValueError(ODD_NAME)), "cannot be unpickled here: ValueError: caf\\udce9"),
    ):
        said = str(raises(TypeError, objects.allgather, comm, own if comm.rank == last else 0))
        assert f"rank {last}" in said
        assert words in said
        assert objects.allgather(comm, "usable") == ["usable"] * comm.size


CASES = [
    Case("broadcast", broadcast, callers=(), check=QUICK),
    Case("allgather", everyones, callers=(), check=QUICK),
    Case("gather", only_root_gets, callers=()),
    Case("object_that_cannot_be_pickled", cannot_be_pickled, callers=()),
    Case("error_that_is_hard_to_tell", errors_that_are_hard_to_tell, callers=()),
]
