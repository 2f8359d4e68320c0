"""Call every collective; print the kernels in use that are not compiled beforehand.

Two lists: those that a start of ranks does not compile, after the collectives that many programs
call; and those that ``cobre-comm compile`` does not compile either, after the rare ones.
"""

import gc
import os

import numpy as np
from cobre_kernels.machine.kernel import Kernel

from cobre_comm import ReduceOp, create_communicator
from cobre_comm.backends import SPECS
from cobre_comm.compile.kernels import rare_kernels


def call_all(comm):
    for count in (4, 200_000):
        one, all_of_them = np.ones(count), np.empty(count * comm.size)
        comm.barrier()
        comm.broadcast(one)
        comm.allreduce(one, np.empty(count))
        comm.allgather(one, all_of_them)
        comm.exact_sum(one)
    with comm.create_shared_region(10) as region:
        region.fence()
    for part in (comm.split(comm.rank % 2), comm.split_local()):
        part.barrier()
        part.close()


def call_rare(comm):
    one = np.ones(4)
    for op in (op for op in ReduceOp if op > ReduceOp.MAX):
        comm.allreduce(one.astype(np.int64), np.empty(4, np.int64), op)
    counts = np.full(comm.size, 4)
    comm.gatherv(one, np.empty(4 * comm.size), counts, 4 * np.arange(comm.size))


def names_of_used_beside(listed):
    kernels = [each for each in gc.get_objects() if type(each) is Kernel]
    used = {kernel.function for kernel in kernels if "_compiled" in vars(kernel)}
    assert len(used) > 10
    return sorted(function.__qualname__ for function in used - {each.function for each in listed})


with create_communicator() as comm:
    call_all(comm)
    [spec] = [spec for spec in SPECS if spec.name == comm.backend]
    listed = [*spec.kernels()]
    if spec.may_part(os.environ):
        listed += spec.kernels_between_nodes()
    unlisted = names_of_used_beside(listed)
    call_rare(comm)
    print(unlisted, names_of_used_beside([*listed, *rare_kernels()]))
