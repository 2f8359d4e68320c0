"""Ranks create a shared region of MIB mebibytes, and print whether they have it."""

import sys

from cobre_comm import AllocationFailed, create_communicator

with create_communicator() as comm:
    try:
        with comm.create_shared_region(int(sys.argv[1]) * 2**17) as region:
            region.fence()
            print(f"rank {comm.rank} has {region.nbytes >> 20} MiB", flush=True)
    except AllocationFailed as error:
        print(
            f"rank {comm.rank} raised AllocationFailed: {error.requested_bytes >> 20} MiB",
            flush=True,
        )
