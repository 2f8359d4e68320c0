"""A rank that a launcher starts, and a program that calls ``launch``."""

import os
import pathlib
import pickle
import sys

from cobre_comm.processes.endings import exit_status
from tests.campaign.work import work


def fault_of(folder):
    return pickle.loads((pathlib.Path(folder) / "fault").read_bytes())


def be_rank(comm, folder):
    fault = fault_of(folder)
    if "caught" in work(comm, fault.caller, fault, folder, _rank(comm)):
        sys.exit(1)  # as a program does that catches the error, tidies up and fails


def _rank(comm):
    kind = os.environ["COBRE_COMM_BACKEND"].upper()
    return comm.rank if comm is not None else int(os.environ[f"COBRE_{kind}_RANK"])


def launching(folder):
    """Launch the ranks, as a program does; return the exit code of the program."""
    from cobre_comm import WorkerError, launch

    fault, kind = fault_of(folder), os.environ["COBRE_COMM_BACKEND"]
    try:
        launch(be_rank, fault.size, backend=kind, args=(folder,), timeout=fault.limit_s)
    except WorkerError as error:
        print(f"rank {error.rank}: {error}", file=sys.stderr)
        return exit_status(error.exit_code) or 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    be_rank(None, sys.argv[1])
