"""Names of mpi4py and others that users look for on our objects, and what to write instead."""

from __future__ import annotations

from typing import NoReturn

_MODULE = "is a module: from cobre_comm import {0}, then {0}.{1}"
_FUNCTION = "is in the package: from cobre_comm import {0}"
_MESSAGES = "has no counterpart here: for messages between two ranks keep mpi4py beside it"
_LATER = "has no counterpart here: a collective returns when it is done"
_PART = "is comm.broadcast(buf, root) here, of which each rank takes its part"
_SMALL = "has no counterpart here: comm.allgatherv, if it is small"
_GATHER = "is comm.gatherv(send, recv, counts, displs, root) here"
_REDUCE = "is comm.allreduce(send, recv, op) here, which gives all ranks the result"

# For each name: the rest of the sentence that begins with the name.
SAID = {
    "Get_rank": "is comm.rank here",
    "Get_size": "is comm.size here",
    "Barrier": "is comm.barrier() here",
    "Bcast": "is comm.broadcast(buf, root) here",
    "bcast": "is comm.broadcast(buf, root) here; "
    "for Python objects cobre_comm.objects.broadcast(comm, obj, root)",
    "Allreduce": "is comm.allreduce(send, recv, op) here; members of cobre_comm.ReduceOp are ops",
    "Reduce": _REDUCE,
    "reduce": f"{_REDUCE}; of one number comm.sum(x), comm.min(x) or comm.max(x)",
    "Allgather": "is comm.allgather(send, recv) here",
    "Allgatherv": "is comm.allgatherv(send, recv, counts, displs) here",
    "Gather": _GATHER,
    "Gatherv": _GATHER,
    "gather": f"{_GATHER}; for Python objects cobre_comm.objects.gather(comm, obj, root)",
    **dict.fromkeys(("Scatter", "Scatterv", "scatter"), _PART),
    **dict.fromkeys(("Alltoall", "Alltoallv", "alltoall", "Scan", "scan", "Exscan"), _SMALL),
    **dict.fromkeys(("Send", "Recv", "Isend", "Irecv", "Sendrecv"), _MESSAGES),
    **dict.fromkeys(("send", "recv", "isend", "irecv", "sendrecv"), _MESSAGES),
    **dict.fromkeys(("Ibarrier", "Ibcast", "Iallreduce", "Iallgather", "Iallgatherv"), _LATER),
    "Split": "is comm.split(color, key) here",
    "Split_type": "is comm.split_local() here, for the ranks that share memory",
    "Dup": "is comm.split(0) here",
    "Free": "is comm.close() here",
    "Abort": "is comm.abort(code) here",
    "objects": _MODULE.format("objects", "broadcast(comm, obj)"),
    "random": _MODULE.format("random", "normal(key, i)"),
    **{each: _FUNCTION.format(each) for each in ("create_communicator", "launch", "ReduceOp")},
    "mean": "is comm.sum(x) / comm.size here",
}


class OtherName:
    """An attribute that raises ``AttributeError``, naming the method to call instead."""

    def __init__(self, name: str) -> None:
        self._said = f"comm.{name} {SAID[name]}"

    def __get__(self, comm: object, owner: type) -> NoReturn:
        raise AttributeError(self._said)
