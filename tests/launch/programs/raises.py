"""Rank 2, or rank 2 of a part, ends by WAY while others wait for it; CALLER is python or njit."""

import contextlib
import os
import sys
import time

from cobre_comm import CollectiveFailed, create_communicator

way, caller = sys.argv[1:]


class Unprintable(Exception):
    def __str__(self):
        raise SystemExit("no words")


ERRORS = {
    "unprintable": Unprintable("x"),
    "surrogates": ValueError("bad \udcff file"),
    "long": ValueError("é" * 5000),
    "empty": ValueError(),
}


def wait(comm):
    comm.barrier()


if caller == "njit":  # only compiled callers need numba, and to import it takes long
    from numba import njit, typeof

    wait = njit(cache=True)(wait)


def work(comm):
    if caller == "njit" and comm.rank == 0:  # rank 0 compiles for all
        wait.compile((typeof(comm),))
    comm.barrier()
    wait(comm)  # all ranks have loaded ``wait`` when it returns
    if comm.rank == 2:
        time.sleep(0.2)  # until the others wait
        if way == "exit":
            sys.exit(3)
        raise ERRORS.get(way, ValueError("bad inflow file\nline 2 of it"))
    try:
        wait(comm)
    except CollectiveFailed as error:
        os.write(1, f"{error}\n".encode())


def main():
    if way == "bare":
        work(create_communicator())
    # raised while another exception is handled; that exception is not the cause
    elif way == "handler":
        try:
            raise LookupError("handled long before")
        except LookupError:
            work(create_communicator())
    elif way == "finally":
        comm = create_communicator()
        with contextlib.closing(comm):
            work(comm)
    elif way == "part":
        with create_communicator() as comm:
            work(comm.split(0, -comm.rank))
    else:
        with create_communicator() as comm:
            work(comm)


main()
