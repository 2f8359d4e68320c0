"""Methods that a backend of another distribution inherits, and that its author need not write."""

import pytest

from cobre_comm import Communicator, InvalidCommunicator, LocalBackend


def delegating(name):
    if isinstance(vars(Communicator).get(name), property) or name == "is_leader":
        return property(lambda self: getattr(self.inner, name))
    return lambda self, *arguments: getattr(self.inner, name)(*arguments)


class Written(Communicator):
    """The methods that a backend has to write, and no others; each calls another communicator."""

    def __init__(self, inner):
        self.inner = inner

    locals().update({name: delegating(name) for name in Communicator.__abstractmethods__})


def test_shares():
    comm = Written(LocalBackend())
    assert comm.share(5) == (0, 5)
    assert [table.tolist() for table in comm.shares(5, 2)] == [[10], [0]]
    comm.close()
    for call in (comm.share, comm.shares):
        with pytest.raises(InvalidCommunicator, match="closed"):
            call(5)
