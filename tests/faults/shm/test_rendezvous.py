"""The ranks of a job meet, or say why not; files of others are left alone."""

import os

import pytest
from cobre_kernels.shm import control

from cobre_comm import InitializationFailed
from cobre_comm.testing import leftovers, run_ranks_outcomes
from cobre_comm.testing.ranks.surroundings import SHM_FOLDER
from tests.faults.shm import rendezvous_bodies as bodies


def run(size, body, *args, **keywords):
    outcomes = run_ranks_outcomes("shm", size, body, *args, connect=False, **keywords)
    return [outcome.value if outcome.ok else outcome for outcome in outcomes]


def check(error, *words):
    assert isinstance(error, InitializationFailed), error
    assert error.backend == "shm"
    assert all(word in str(error) for word in words), str(error)


def test_stale_segment_is_replaced():
    kinds = ["finished", "unfinished", "empty"]
    assert run(2, bodies.stale, kinds) == [[3.0] * len(kinds)] * 2


def test_live_segment_is_left_alone():
    [(error, still_there)] = run(1, bodies.live)
    check(error, "in use", "COBRE_SHM_NAME")
    assert still_there


def test_foreign_file_is_left_alone():
    contents = [b"somebody's data, longer than a word", b"short", bytes(4096)]
    [results] = run(1, bodies.foreign, contents)
    assert len(results) == len(contents)
    for error, still_there in results:
        check(error, "not a segment of cobre_comm", "COBRE_SHM_NAME")
        assert still_there


def test_segment_open_to_others():
    [(error, still_there)] = run(1, bodies.open_to_others)
    check(error, "open to others", "666")
    assert still_there


OTHER_VERSION = control.LAYOUT_VERSION + 1


@pytest.mark.parametrize(
    ("header", "mode", "words"),
    [
        (
            {"version": OTHER_VERSION}, 0o600,
            ("version", str(OTHER_VERSION), str(control.LAYOUT_VERSION)),
        ),
        pytest.param(
            {"magic": 12345}, 0o600, ("not a segment of cobre_comm",), marks=pytest.mark.slow
        ),
        pytest.param(
            {"size": 5}, 0o600, ("5 ranks", "2", "COBRE_SHM_SIZE"), marks=pytest.mark.slow
        ),
        pytest.param({}, 0o644, ("open to others", "644"), marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_follower_refuses_the_segment(tmp_path, header, mode, words):
    check(run(2, bodies.follower_meets, str(tmp_path), header, mode)[1], *words)


@pytest.mark.slow
def test_duplicate_rank():
    env = [{"PROCESS": str(r), "COBRE_SHM_RANK": str(min(r, 1))} for r in range(3)]
    results = run(3, bodies.duplicate, env=env)
    check(results[2], "rank 1", "already attached", "COBRE_SHM_RANK")
    check(results[0], "2")


@pytest.mark.slow
def test_missing_follower():
    results = run(3, bodies.one_rank_is_missing, 2, 1.5)
    check(results[0], "2", "did not attach")
    check(results[1], "rank 0")


def test_missing_leader():
    check(run(2, bodies.one_rank_is_missing, 0, 0.2)[1], "does not exist", "rank 0")


def test_follower_dies_while_another_waits():
    leader, _, follower, _ = run(4, bodies.dies_when_attached, 1, 2, 3)
    check(leader, "rank 1", "ended")
    check(follower, "rank 0")


def test_leader_dies_while_a_follower_waits():
    check(run(3, bodies.dies_when_attached, 0, 1, 2)[1], "rank 0", "ended")
    # Before all have attached the name is still there; the next job would replace it.
    for name in leftovers():
        (SHM_FOLDER / name).unlink()


def test_segment_is_private_reserved_and_nameless_once_started():
    results = run(2, bodies.segment_properties)
    assert [value for value, _, _ in results] == [3.0, 3.0]
    seen = results[0][1]
    assert (seen["mode"], seen["uid"]) == (0o600, os.geteuid())
    assert seen["blocks"] >= seen["size"] > 0
    assert not any(exists for *_, exists in results)


def test_leader_dies_while_it_splits():
    outcomes = run_ranks_outcomes("shm", 3, bodies.leader_dies_in_split)
    assert outcomes[0].exit_code == -9
    assert [outcome.value for outcome in outcomes[1:]] == [(0,), (0,)]


def test_two_ranks_0_find_the_same_stale_segment(tmp_path):
    """The second must not make a segment that the first then removes as the stale one."""
    env = [{"PROCESS": str(process), "COBRE_SHM_RANK": "0"} for process in range(2)]
    first, second = run(2, bodies.waits_while_another_removes, str(tmp_path), env=env)
    check(first, "1", "did not attach")
    check(second, "in use")


def test_regions_leave_names_of_other_jobs_alone():
    assert run(1, bodies.neighbour_is_left_alone) == [[True] * 3]
