"""Identity of a rank: its number, the number of ranks, the backend, whether it is a leader."""

from numba import njit

from cobre_comm import available_backends
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.cases.case import QUICK, Case
from cobre_comm.testing.cases.raised import raises


@njit(cache=True, nogil=True)
def compiled_identity(comm):
    return comm.rank, comm.size, comm.is_leader


def identity(comm, caller="njit"):
    in_python = (comm.rank, comm.size, comm.is_leader)
    if caller == "njit":
        assert tuple(compiled_identity(comm)) == in_python
    comm.barrier()
    assert (comm.rank, comm.size, comm.is_leader) == in_python
    assert [type(each) for each in in_python] == [int, int, bool]
    for name in ("rank", "size", "backend", "is_leader"):
        raises(AttributeError, setattr, comm, name, 5)
    return (*in_python, comm.backend)


def is_who_it_should_be(ran):
    kind = BackendName.parse(ran.backend).kind
    leaders = ran.settings.leaders(ran.backend, ran.size)
    right = [(rank, ran.size, leads, kind) for rank, leads in enumerate(leaders)]
    seen = [tuple(value) for value in ran.values]
    assert seen == right, f"(rank, size, leader, backend) is {seen}, should be {right}"
    assert kind in available_backends()


CASES = [
    Case("rank_size_leader_and_backend", identity, expect=is_who_it_should_be, check=QUICK),
]  # fmt: skip
