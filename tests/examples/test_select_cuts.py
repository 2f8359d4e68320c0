"""A cut that is the highest at no remembered point is deleted, alike on all ranks and nodes."""

import contextlib
import itertools
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from case.random_case import Shape
from compiled import FROM_PYTHON
from drawn_cases import case_of, train_each, train_selected
from numba import njit
from stage.points import FIELDS, Points
from stage.pool import BLOCK, Pool
from training.loop.select import count_kept, select_cuts
from training.plan import Options
from training.run import Run, run_case, run_training
from training.share import shared_setting

from cobre_comm.testing.ranks.outcome import values_of
from tests.forked import ranks
from tests.grid import slow, some

VALLEY = "gen_h8_t12_k10"


class Memory(NamedTuple):
    """The fields of `training.loop.memory.Memory` that selection reads."""

    trial: np.ndarray
    new: np.ndarray
    known: np.ndarray


class Plan(NamedTuple):
    """The fields of `training.plan.Plan` that selection reads."""

    ring: int
    spared: int


class State(NamedTuple):
    """The fields of `training.loop.memory.State` that selection reads."""

    pool: Pool
    points: Points
    memory: Memory
    plan: Plan


@njit(**{**FROM_PYTHON, "cache": False})
def select_as(state: Any) -> None:
    """Do one rank's share of the selection."""
    select_cuts(state)


@njit(**{**FROM_PYTHON, "cache": False})
def take_counts(count: np.ndarray, kept: np.ndarray) -> None:
    """Set the number of cuts of each stage to the number of cuts that are kept."""
    count_kept(count, kept)


def value_of(cut, point):
    """Return the value of a cut (slopes, then constant), added up in the order of compiled code."""
    value = cut[-1]
    for slope, volume in zip(cut, point, strict=False):
        value += slope * volume
    return value


def level_one(cuts, points):
    """Return each cut that is the highest at some point; of equal cuts the first counts."""
    if not cuts:
        return []
    values = np.array([[value_of(cut, point) for cut in cuts] for point in points])
    return [cuts[c] for c in sorted(set(values.argmax(axis=1)))]


def drawn(rng, whole, *shape):
    """Return normal numbers, or whole numbers, of which many sums are equal."""
    return rng.integers(-2, 3, shape).astype(float) if whole else rng.normal(size=shape)


@pytest.mark.parametrize("writers", [1, 3])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("spared", [0, 60])
@pytest.mark.parametrize("ring", [1, 7, 150, 1000])
def test_the_cuts_that_are_left_are_those_of_the_definition(ring, spared, whole, writers):
    rng, (stages, hydros, rows) = np.random.default_rng([ring, whole]), (5, 3, 40)
    room = ring + spared + 2 * rows
    coef, at = np.zeros((stages, hydros + 1, room)), np.zeros((stages, hydros + FIELDS, ring))
    kept, known, trial = np.zeros(stages), np.zeros((stages, hydros)), np.zeros((rows, 20))
    ranks = []
    for writer in range(writers):
        pool = Pool(coef, np.zeros(stages, np.int64), np.zeros(BLOCK), writer, writers)
        points = Points(at, np.zeros(stages, np.int64), kept, np.zeros(room, np.int64))
        memory = Memory(trial, np.zeros(rows, np.int64), known)
        ranks.append(State(pool, points, memory, Plan(ring, spared)))
    cuts, seen = ([[] for _ in range(stages - 1)] for _ in range(2))
    deleted = 0
    for iteration in range(6):
        trial[:] = drawn(rng, whole, *trial.shape)
        for t in range(stages - 1):
            # Stage 0 gets few cuts, and no cut in the first iterations.
            new = drawn(rng, whole, rows if t else iteration // 2, hydros + 1)
            coef[t, :, len(cuts[t]) : len(cuts[t]) + len(new)] = new.T
            cuts[t] += [tuple(cut) for cut in new]
            come = dict.fromkeys(map(tuple, trial[:, (t + 1) * hydros : (t + 2) * hydros]))
            seen[t] += list(come)
            for state in ranks:
                state.pool.count[t] += len(new)
        for state in ranks:
            select_as(state)
        for state in ranks:
            take_counts(state.pool.count, kept)
        for t in range(stages - 1):
            before = len(cuts[t])
            if before > spared:
                cuts[t] = level_one(cuts[t], seen[t][-ring:])
            deleted += before - len(cuts[t])
            for state in ranks:
                assert state.pool.count[t] == len(cuts[t])
                assert state.points.seen[t] == len(seen[t])
            assert coef[t, :, : len(cuts[t])].T.tolist() == list(map(list, cuts[t]))
    assert deleted > 0


@pytest.mark.slow
def test_most_cuts_of_the_large_case_go_and_its_bound_comes(cases, comm):
    path = cases / f"{VALLEY}.json"
    kept, some = (run_training(path, comm, iterations=60, select=on) for on in (False, True))
    assert some.lower_bound[-1] >= 182400.0
    assert some.trace["cuts"][-1] < 0.7 * kept.trace["cuts"][-1]
    assert "select" in some.phases


def test_memory_is_bounded_by_the_number_of_points(comm):
    case, ring, trajectories = case_of(Shape(6, 4, 4, 10), 1), 40, 16
    with (
        mock.patch("training.plan.REMEMBERED", ring),
        mock.patch("training.cuts.ROOM", 1),
        shared_setting(comm, case) as setting,
        contextlib.closing(Run(setting, Options(40, trajectories, select=True))) as run,
    ):
        while not run.stopping.reason:
            run.advance(lambda number, line: None)
        made = run.points.points.seen
        assert made.max() > 10 * ring
        assert run.cuts.pool.count.max() <= ring
        assert run.points.memory.rows.shape[2] <= ring * 3 // 2
        assert run.cuts.memory.rows.shape[2] <= (ring + trajectories) * 3 // 2


# The smaller ring has fewer columns than a training has points, so columns are used again.
TRAINED = [*itertools.product(["shm"], [1, 2, 3, 4]), ("tcp:0,0,1,1", 4), ("tcp:0,1,2", 3)]


RINGS = (30, 2048)


@pytest.fixture(scope="module")
def alone(comm):
    return dict(zip(RINGS, train_each(comm, RINGS), strict=True))


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("backend", "ranks"), some([("shm", 3), ("tcp:0,0,1,1", 4)], TRAINED))
def test_ranks_and_nodes_select_the_same_cuts(alone, pools, backend, ranks):
    assert alone[30] != alone[2048]
    trained = pools.get(backend, ranks).run(train_each, RINGS, timeout_s=300.0)
    assert trained == [[*alone.values()]] * ranks


@pytest.mark.timeout(400)
@pytest.mark.parametrize("ring", [RINGS[0], slow(RINGS[1])])
def test_other_ranks_go_on_with_the_bits_of_one_training(alone, tmp_path, ring):
    path = tmp_path / "half.ckpt"
    values_of(ranks("shm", 3, train_selected, ring, 5, path, timeout_s=300.0))
    went_on = ranks("tcp:0,0,1,1", 4, train_selected, ring, 12, path, timeout_s=300.0)
    assert values_of(went_on) == [alone[ring]] * 4


def test_few_cuts_are_all_kept_and_many_are_selected_by_default(comm):
    """While a stage has few cuts, the bits are those of a training that keeps all cuts."""
    case, options = case_of(Shape(6, 4, 8, 6), 1), {"trajectories": 13}
    with mock.patch("training.plan.REMEMBERED", 60):
        spared, all_kept = (
            run_case(case, comm, Options(12, **options, select=select)) for select in (None, False)
        )
    counts = np.array([[run.trace["cuts"][i] for i in range(12)] for run in (spared, all_kept)])
    assert (counts[0, :4] == counts[1, :4]).all()
    assert spared.lower_bound[:4] == all_kept.lower_bound[:4]
    assert counts[0, -1] < 0.9 * counts[1, -1]
    default = run_case(case, comm, Options(12, **options))
    assert default.cuts_sha256 == all_kept.cuts_sha256


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("backend", "ranks"), some([("tcp:0,0,1,1", 4)], [("shm", 3)]))
def test_ranks_and_nodes_select_from_the_same_number_on(comm, pools, backend, ranks):
    result = train_selected(comm, 30, select=None)
    ours = pools.get(backend, ranks)
    found = ours.run(train_selected, 30, 12, None, None, timeout_s=300.0)
    assert found == [result] * ranks


def test_a_training_that_selects_from_a_number_on_goes_on_with_its_bits(comm, tmp_path):
    path = tmp_path / "half.ckpt"
    for iterations in (1, 4, 12):
        result = train_selected(comm, 30, iterations, path, select=None)
    assert result == train_selected(comm, 30, select=None)
