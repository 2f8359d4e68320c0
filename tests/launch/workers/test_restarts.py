import pytest

from cobre_comm import WorkerError, launch
from tests.launch.workers.bodies import lose_rank_1 as lose


@pytest.mark.parametrize(("way", "backend"), [("kill", "shm"), ("raise", "tcp")])
def test_workers_are_started_again_after_a_loss(way, backend, caplog):
    result = launch(lose, 2, backend=backend, args=(way, 1), max_restarts=2)
    assert result.values == [(1, 2)] * 2
    [line] = [record.getMessage() for record in caplog.records if record.name == "cobre_comm"]
    assert line.startswith("rank 1 ")
    assert line.endswith("; the job is started again in 1 s, on 2 ranks (restart 1 of 2)")


def test_killed_workers_are_left_out_down_to_the_fewest():
    assert launch(lose, 3, args=("kill", 2), max_restarts=3, min_ranks=2).values == [(2, 2)] * 2


def test_the_last_failure_is_raised(caplog):
    with pytest.raises(WorkerError, match="rank 1 raised ValueError: attempt 1"):
        launch(lose, 2, args=("raise", 9), max_restarts=1)
    given_up = "the job is not started again: it has been, once"
    assert caplog.records[-1].getMessage() == given_up


@pytest.mark.quick
def test_numbers_that_make_no_restarts():
    with pytest.raises(ValueError, match="max-restarts must be 0 or more, got -1"):
        launch(lose, 2, args=("kill", 0), max_restarts=-1)
    with pytest.raises(ValueError, match="min-ranks must be between 1 and 2, got 3"):
        launch(lose, 2, args=("kill", 0), max_restarts=1, min_ranks=3)
    with pytest.raises(TypeError):
        launch(lose, 2, args=("kill", 0), max_restarts=1.5)
    with pytest.raises(ValueError, match="not for those of an executor"):
        launch(lose, 2, args=("kill", 0), max_restarts=1, executor=object())
