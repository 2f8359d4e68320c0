"""Collectives that the library itself calls are not counted or shown as calls of the program."""

import re
import time

import numpy as np
import pytest

from cobre_comm import CollectiveFailed, objects
from cobre_comm.contract.work import Work
from cobre_comm.testing.cases.raised import raises
from tests.forked import on_forks
from tests.launch.command import cobre


@on_forks(2, "shm", "tcp")
def test_statistics_have_a_row_for_them(comm):
    before = comm.stats()["library"].calls
    for _ in range(3):
        comm.sum(1)
    comm.create_shared_region(8).close()
    comm.split_local().close()
    comm.split(0).close()
    assert objects.broadcast(comm, {"stages": 12}) == {"stages": 12}
    assert objects.allgather(comm, comm.rank) == [0, 1]
    assert objects.gather(comm, comm.rank) in ([0, 1], None)
    stats = comm.stats()
    once = dict.fromkeys(("create_shared_region", "split_local", "split"), 1)
    counted = {name: each.calls for name, each in stats.operations.items() if name != "library"}
    assert counted == {"allreduce": 3, **once}
    assert stats["library"].calls - before > 9
    assert re.search(r"^library +\d", repr(stats), flags=re.MULTILINE)


@on_forks(2, "shm", "tcp")
def test_an_error_says_for_what_they_were_called(comm):
    comm.barrier()
    with pytest.raises(CollectiveFailed) as caught:
        objects.broadcast(comm, 1) if comm.rank == 0 else comm.broadcast(np.zeros(2, np.int64))
    said = "rank 0 called broadcast(root=0, int64, 16 bytes) of objects.broadcast; rank 1 called "
    assert f"{said}broadcast(root=0, int64, 16 bytes)" in str(caught.value)
    assert caught.value.operation == ("objects.broadcast" if comm.rank == 0 else "broadcast")
    if comm.rank == 0:  # rank 1 may read the journal of rank 0 before rank 0 notes the call there
        told = "\n".join(caught.value.__notes__)
        noted = r"#2 broadcast\(root=0, 16 bytes int64\) of objects.broadcast entered"
        assert re.search(noted, told)


@on_forks(2, "shm", "tcp")
def test_who_was_waited_for_is_counted_and_no_share(comm):
    for _ in range(7):
        comm.sum(1)
    for sentence in re.findall("rank . was waited for in .*", repr(comm.stats())):
        assert re.fullmatch(r"rank . was waited for in \d of 7 allreduce calls, .* of .*", sentence)


def broadcast_an_object(comm):
    return objects.broadcast(comm, {"stages": np.arange(12)})


def gather_objects(comm):
    return objects.allgather(comm, np.arange(12))


def know_costs(comm):
    return comm.create_work(3).measured_costs()


def refuse(*_, **__):
    raise MemoryError("no memory on this rank")


@on_forks(2, "shm", "tcp")
@pytest.mark.parametrize("act", [broadcast_an_object, gather_objects, know_costs])
def test_a_rank_that_fails_between_two_of_them_is_not_waited_for(comm, act, monkeypatch):
    if comm.rank == 1:
        with monkeypatch.context() as patch:
            patch.setattr(objects.np, "empty", refuse)
            patch.setattr(Work, "_own_costs", refuse)
            raises(MemoryError, act, comm)
        time.sleep(2)  # the rank has caught the error, and its communicator is open
    else:
        began = time.monotonic()
        error = raises(CollectiveFailed, act, comm)
        assert time.monotonic() - began < 1.5
        assert error.ranks == (1,)


TRACED = """
from cobre_comm import create_communicator
with create_communicator() as comm:
    comm.sum(1)
    comm.split(0).close()
"""


def test_a_trace_says_for_what_they_were_called(tmp_path, written):
    done = cobre("run", "-n", 2, written(TRACED), COBRE_COMM_TRACE=str(tmp_path / "trace"))
    assert done.returncode == 0, done.stderr
    [trace] = (tmp_path / "trace").glob("*rank-0.json")
    events = trace.read_text().splitlines()
    called = [event for event in events if '"name":"allreduce"' in event.replace(" ", "")]
    assert sum('"of":"split"' in event for event in called) == len(called) - 1 > 0
