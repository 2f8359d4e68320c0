import os
import re
import signal

import pytest

from cobre_comm import CollectiveFailed, WorkerError, launch


def lose(comm, way, victims):
    """Lose the victims; the others return whom they have lost, or fail by WAY."""
    comm.barrier()
    if comm.rank in victims:
        if way == "raise":
            raise ValueError("the first cause")
        if way == "abort":
            comm.abort(7)
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.barrier()
    except CollectiveFailed as error:
        if way == "uncaught":
            raise
        return error.ranks


@pytest.mark.parametrize(("way", "backend", "lost"), [("kill", "shm", 0), ("raise", "tcp", 1)])
def test_the_others_return_their_values(way, backend, lost, caplog):
    result = launch(lose, 3, backend, args=(way, {lost}), survive=True)
    survivors = [rank for rank in range(3) if rank != lost]
    assert result.values == [None if rank == lost else (lost,) for rank in range(3)]
    assert result.value == (lost,)
    assert [worker.rank for worker in result.workers] == survivors
    [error] = result.lost
    assert (error.rank, error.exit_code) == (lost, {"kill": -9, "raise": 1}[way])
    assert isinstance(error.inner, ValueError) == (way == "raise")
    [line] = [record.getMessage() for record in caplog.records if record.name == "cobre_comm"]
    said = {
        "kill": "was ended by signal 9 (SIGKILL)",
        "raise": "raised ValueError: the first cause",
    }
    others = "; the other ranks (go on|had ended)"  # a busy launcher may learn all ends at once
    assert re.fullmatch(re.escape(f"rank {lost} {said[way]}") + others, line)


def test_without_a_loss_all_is_as_ever():
    result = launch(lose, 2, args=("kill", ()), survive=True)
    assert (result.values, result.lost) == ([None, None], [])
    assert [worker.rank for worker in result.workers] == [0, 1]


@pytest.mark.parametrize(
    ("way", "victims", "rank", "code"),
    [("uncaught", {2}, {0, 1}, 1), ("kill", {0, 1, 2}, {0, 1, 2}, -9), ("abort", {1}, {1}, 7)],
)
def test_survivors_that_fail_and_jobs_without_any_raise(way, victims, rank, code):
    with pytest.raises(WorkerError) as caught:
        launch(lose, 3, args=(way, victims), survive=True)
    assert caught.value.rank in rank
    assert caught.value.exit_code == code


class EndsItsReader:
    """What ends the process that unpickles it, if that is rank 1; other ranks get None."""

    def __reduce__(self):
        return end_rank_1, ()


def end_rank_1():
    if os.environ["COBRE_SHM_RANK"] == "1":
        os._exit(3)


def test_a_loss_before_the_ranks_have_met_is_a_failure_of_the_job():
    with pytest.raises(WorkerError) as caught:
        launch(lose, 3, "shm", args=("kill", EndsItsReader()), survive=True)
    assert (caught.value.rank, caught.value.exit_code) == (1, 3)


@pytest.mark.quick
def test_an_executor_is_refused():
    with pytest.raises(ValueError, match="not for those of an executor"):
        launch(lose, 2, args=("kill", ()), survive=True, executor=object())
