"""Ranks meet; then rank ACTOR is lost, by WAY, in the first TIMES attempts.

Each rank writes to FOLDER where it runs, and checks that nothing is left of earlier attempts.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import sys
import time

attempt = int(os.environ["COBRE_RESTART"])
folder, way, actor, times = pathlib.Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:5])


def note(rank):
    """Write down the process, job and port of this rank."""
    facts = os.getpid(), os.environ["COBRE_JOB_ID"], int(os.environ.get("COBRE_TCP_PORT", 0))
    (folder / f"{attempt}-{rank}").write_text(json.dumps(facts))


def runs(pid):
    """Whether a process runs; a killed launcher leaves ranks that process 1 has yet to reap."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def find_nothing_left():
    """Check that earlier attempts have left no process, segment or listener."""
    shared = [path.name for path in pathlib.Path("/dev/shm").iterdir()]
    for file in folder.iterdir():
        if int(file.name.split("-")[0]) < attempt:
            pid, job, port = json.loads(file.read_text())
            assert not runs(pid), file
            assert not [name for name in shared if job in name], file
            with socket.socket() as sock:  # tried if this attempt has not the same port again
                is_new = port and str(port) != os.environ["COBRE_TCP_PORT"]
                assert not is_new or sock.connect_ex(("127.0.0.1", port)), file


if way == "early":
    sys.exit(3)
find_nothing_left()
from cobre_comm import create_communicator  # noqa: E402  # an early rank makes none

comm = create_communicator()
note(comm.rank)
comm.barrier()
print(f"attempt {attempt} on {comm.size} ranks")
print(f"ready {comm.rank} {os.getpid()}")
if attempt < times and comm.rank == actor:
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "raise":
        raise ValueError("the first cause")
    if way == "sleep":
        time.sleep(60)
    sys.exit(int(way))
comm.barrier()
