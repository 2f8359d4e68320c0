"""Call every collective; print the kernels in use that are not compiled before ranks start."""

import gc

import numpy as np
from cobre_kernels.machine.kernel import Kernel

from cobre_comm import create_communicator
from cobre_comm.backends import SPECS


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


with create_communicator() as comm:
    call_all(comm)
    [spec] = [spec for spec in SPECS if spec.name == comm.backend]
    listed = {kernel.function for kernel in spec.kernels()}
    kernels = [each for each in gc.get_objects() if type(each) is Kernel]
    used = {kernel.function for kernel in kernels if "_compiled" in vars(kernel)}
    print(len(used) > 10, sorted(function.__qualname__ for function in used - listed))
