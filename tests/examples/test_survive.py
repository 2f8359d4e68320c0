"""What a training keeps when its communicator has lost a rank."""

import pytest
import train
from program import through_losses
from training.finished import NONE, Finished
from training.plan import Options
from training.run import run_case
from training.share import load_case

from cobre_comm import CollectiveFailed

CASE, ITERATIONS = "gen_h8_t12_k10.json", 12


@pytest.fixture(scope="module")
def case(cases, comm):
    return load_case(comm, cases / CASE)


def trained(case, comm, iterations, finished=None):
    options = Options(iterations=iterations, trajectories=5, select=False)
    return run_case(case, comm, options, finished=finished)


@pytest.fixture(scope="module")
def whole(case, comm):
    return trained(case, comm, ITERATIONS)


@pytest.mark.parametrize("number", [0, 1, 6, 7])
def test_half_an_iteration_is_written_again(case, comm, whole, number, monkeypatch):
    """Behind the cuts that count there are numbers from an iteration that was interrupted."""
    finished = Finished()
    trained(case, comm, max(1, number + number % 2), finished)
    monkeypatch.setattr(Finished, "agree", lambda self, comm: number)
    counts = finished.after(number).counts
    for rows, count in zip(finished.rows, counts, strict=True):
        rows[:, count:] = 1e30
    resumed = trained(case, comm, ITERATIONS, finished)
    assert resumed.cuts_sha256 == whole.cuts_sha256
    assert resumed.lower_bound == whole.lower_bound
    assert resumed.upper_bound_half_width == whole.upper_bound_half_width


def test_a_rank_that_has_not_begun_makes_all_begin_anew(case, comm, whole, monkeypatch):
    finished = Finished()
    assert finished.agree(comm) == NONE
    trained(case, comm, 3, finished)
    assert finished.agree(comm) == 3
    monkeypatch.setattr(Finished, "agree", lambda self, comm: NONE)
    assert trained(case, comm, ITERATIONS, finished).cuts_sha256 == whole.cuts_sha256


def test_a_training_that_deletes_cuts_cannot_go_on_after_a_loss(case, comm):
    finished = Finished()
    trained(case, comm, 3, finished)
    with pytest.raises(ValueError, match="all cuts"):
        run_case(case, comm, Options(iterations=4, trajectories=5), finished=finished)


class Fails:
    """A communicator of ``sizes[0]`` ranks; its ``shrink`` returns one of ``sizes[1]`` ranks."""

    def __init__(self, *sizes):
        self.size, *self.left = sizes

    def shrink(self):
        return Fails(*self.left)

    def close(self):
        pass


def test_work_is_done_again_until_no_rank_is_lost():
    sizes = []

    def work(comm):
        sizes.append(comm.size)
        if comm.left:
            raise CollectiveFailed("barrier", message="rank 1 died", ranks=[1])

    through_losses(Fails(4, 3, 1), work)
    assert sizes == [4, 3, 1]
    with pytest.raises(CollectiveFailed):
        through_losses(Fails(3, 3, 1), work)


def test_cuts_that_move_are_refused(capsys):
    assert train.main(["no.json", "--survive", "--select-cuts"]) == 2
    assert "--survive needs all cuts: --select-cuts moves those of" in capsys.readouterr().err
