"""Each rank prints its CPUs, and on which NUMA nodes shared memory is, as one line of JSON.

Pages are grouped by the rank that should have taken them; each group is counted by NUMA node.
"""

import collections
import ctypes
import json
import os
import platform

import numpy as np
from cobre_kernels.shm import control

from cobre_comm import create_communicator

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MOVE_PAGES = {"x86_64": 279, "aarch64": 239}[platform.machine()]
ROWS = 64  # each rank has this many rows, each of one page


def numa_nodes(address, nbytes):
    """Return the NUMA nodes of the pages of mapped memory, and how many pages are on each.

    Source: move_pages(2), which moves nothing and reports where pages are if it is given no nodes.
    The call knows only pages that this process has read or written.
    """
    count = nbytes // PAGE_BYTES
    for page in range(count):
        ctypes.c_ubyte.from_address(address + page * PAGE_BYTES).value  # noqa: B018
    pages = (ctypes.c_void_p * count)(*range(address, address + nbytes, PAGE_BYTES))
    found = (ctypes.c_int * count)()
    words = MOVE_PAGES, 0, count
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(*map(ctypes.c_long, words), pages, None, found, ctypes.c_long(0)):
        raise OSError(ctypes.get_errno(), "move_pages")
    return collections.Counter(found)


comm = create_communicator()
node = comm._comm.node
told = {
    "cpus": sorted(os.sched_getaffinity(0)),
    "control": numa_nodes(node.control.address, control.buffers_offset(comm.size)),
    "slots": [
        numa_nodes(node.buffers + rank * node.buffer_stride, node.buffer_stride)
        for rank in range(comm.size)
    ],
}
topology = comm.topology()
told["topology"] = [topology.cpus[comm.rank], topology.numa[comm.rank]]
for placement in ("owner", "leader", "interleave"):
    shape = (ROWS * comm.size, PAGE_BYTES // 8)
    with comm.create_shared_region(shape, np.float64, placement=placement) as region:
        start = region.as_slice().ctypes.data
        share = ROWS * PAGE_BYTES
        told[placement] = [numa_nodes(start + r * share, share) for r in range(comm.size)]
    comm.barrier()
print(json.dumps(told))
comm.close()
