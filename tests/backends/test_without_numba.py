"""Calls from Python need no numba, which may be imported before or after our objects are made."""

import pytest

from tests.command import python
from tests.launch.command import cobre
from tests.launch.mpi_libraries import on

CALLS = """
import sys
import numpy as np
import cobre_comm
from cobre_comm import ReduceOp, objects, random

with cobre_comm.create_communicator() as comm:
    send, recv = np.arange(4.0) + comm.rank, np.zeros(4)
    gathered, ones, at = np.zeros(4 * comm.size), [4] * comm.size, [*range(0, 4 * comm.size, 4)]
    comm.allreduce(send, recv, ReduceOp.PROD)
    comm.allgatherv(send, gathered, ones, at)
    comm.gatherv(send, gathered, ones, at)
    comm.broadcast(recv)
    comm.barrier()
    total = comm.exact_sum(send)
    objects.broadcast(comm, {"a": 1} if comm.rank == 0 else None)
    with comm.create_shared_region(5) as region, comm.create_work(3) as work:
        region.fence()
        list(work)
        with comm.phase("draw"):
            random.normal(random.key(1), np.arange(3))
    comm.split(0).barrier()
    cobre_comm.check_signals()
    assert cobre_comm.monotonic_ns() > 0
    comm.stats()
    fast = type(type(comm).barrier).__name__
print("numba" in sys.modules, fast)
"""


@pytest.mark.quick
@pytest.mark.parametrize("name", ["shm", "tcp:0,1"])
def test_ranks_that_call_from_python_import_no_numba(name, written):
    option, variables = on(name)
    done = cobre("run", "-n", 2, *option, written(CALLS), **variables)
    said = "False method_descriptor"
    assert sorted(done.stdout.splitlines()) == [f"[0] {said}", f"[1] {said}"], done.stderr


FIRST = {
    "cobre_comm": "import cobre_comm\nfrom cobre_comm import random\nmake()\nimport numba",
    "numba": "import numba\nfrom cobre_comm import random\nmake()",
    "a function": "import numba\nnumba.njit(lambda: 1)()\nfrom cobre_comm import random\nmake()",
    "a compiled caller": "import numba\nmake()\nnumba.njit(lambda x: x)(comm)\n"
    "from cobre_comm import random",
}
ORDER = """
def make():
    global comm
    import cobre_comm
    comm = cobre_comm.create_communicator("local")

{first}

@numba.njit
def total(comm):
    return comm.sum(3.0) + random.uniform(random.key(2026), 0)

print(total(comm) == 3.0 + random.uniform(random.key(2026), 0))
"""


@pytest.mark.parametrize("first", FIRST)
def test_whichever_comes_first(first):
    done = python("-W", "error", "-c", ORDER.format(first=FIRST[first]))
    assert done.stdout == "True\n", done.stderr
