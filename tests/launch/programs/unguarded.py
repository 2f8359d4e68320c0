"""A script without a guard: rank 1 has a pool, and each process of the pool imports the script."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from cobre_comm import create_communicator


def square(number):
    return number**2


comm = create_communicator()
comm.barrier()
if comm.rank == 1:
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            print(list(pool.map(square, range(3))))
    except BrokenProcessPool:
        print("broken", flush=True)
comm.barrier()
print("met", flush=True)
