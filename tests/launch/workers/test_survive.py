import re

import pytest

from cobre_comm import launch
from tests.launch.workers.bodies import lose


@pytest.mark.parametrize(("way", "backend", "lost"), [("SIGKILL", "shm", 0), ("raise", "tcp", 1)])
def test_the_others_return_their_values(way, backend, lost, caplog):
    result = launch(lose, 3, backend=backend, args=(way, {lost}), survive=True)
    survivors = [rank for rank in range(3) if rank != lost]
    assert result.values == [None if rank == lost else (lost,) for rank in range(3)]
    assert result.value == (lost,)
    assert [worker.rank for worker in result.workers] == survivors
    [error] = result.lost
    assert (error.rank, error.exit_code) == (lost, {"SIGKILL": -9, "raise": 1}[way])
    assert isinstance(error.inner, ValueError) == (way == "raise")
    [line] = [record.getMessage() for record in caplog.records if record.name == "cobre_comm"]
    said = {
        "SIGKILL": "was ended by signal 9 (SIGKILL)",
        "raise": "raised ValueError: no such case",
    }
    others = "; the other ranks (go on|had ended)"  # a busy launcher may learn of all ends together
    assert re.fullmatch(re.escape(f"rank {lost} {said[way]}") + others, line)


def test_without_a_loss_all_is_as_ever():
    result = launch(lose, 2, args=("SIGKILL", ()), survive=True)
    assert (result.values, result.lost) == ([None, None], [])
    assert [worker.rank for worker in result.workers] == [0, 1]


@pytest.mark.quick
def test_an_executor_is_refused():
    with pytest.raises(ValueError, match="not for those of an executor"):
        launch(lose, 2, args=("SIGKILL", ()), survive=True, executor=object())
