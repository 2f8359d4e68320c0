"""The same policy for any number of ranks and any backend: every case, to the bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cobre_comm.testing import BackendName
from tests.grid import skip_unless_here

EXAMPLE = Path(__file__).parents[2] / "examples" / "sddp"
CASES = sorted(EXAMPLE.glob("cases/*.json"))
# gen_h8 has no optimum that was proved; this much of its bound must be reached.
FLOORS = {"gen_h8_t12_k10": 182400.0}
RUNS = [("shm", 1), ("shm", 2), ("shm", 4), ("tcp", 4)]
SLOW_RUNS = [("tcp", 2), ("mpi-openmpi", 2), ("mpi-openmpi", 4), ("mpi-mpich", 2), ("mpi-mpich", 4)]
# Over mpi, one case on each path is for every day.
MPI_CASE = EXAMPLE / "cases" / "gen_h4_t5_k3.json"
MPI_RUNS = [("mpi-openmpi", 2), ("mpi-mpich", 4), ("mpi-openmpi:0,1", 4), ("mpi-mpich:0,1,2", 3)]
OPTIONS = {"gen_h8_t12_k10": ("--iterations", "40")}  # a fifth of its default, and enough


def train(case, ranks, backend, out, *options):
    skip_unless_here(backend)
    name = BackendName.parse(backend)
    env = {**os.environ, **name.environment()}
    command = [sys.executable, "-m", "cobre_comm", "run", "-n", str(ranks), "--backend", name.kind]
    command += [str(EXAMPLE / "train.py"), str(case), "--out", str(out), *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=220)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(out.read_text())
    assert (result["ranks"], result["backend"]) == (ranks, name.kind)
    return result


def slow_pair(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def options_of(case):
    return OPTIONS.get(case.stem, ())


def same_bits(one, other):
    names = ("lower_bound", "cuts_sha256", "iterations", "stopped")
    return all(one[name] == other[name] for name in names)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Results of one rank, by case, made when first asked for."""
    folder, made = tmp_path_factory.mktemp("alone"), {}

    def result(case):
        if case not in made:
            made[case] = train(case, 1, "local", folder / case.name, *options_of(case))
        return made[case]

    return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_bound_reaches_the_optimum(case, alone):
    bound = float.fromhex(alone(case)["lower_bound"][-1])
    optimum = json.loads(case.read_text())["verified"]["value"]
    if case.stem in FLOORS:
        assert FLOORS[case.stem] <= bound
    else:
        assert bound == pytest.approx(optimum, rel=1e-6)
        assert bound <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
@pytest.mark.parametrize(("backend", "ranks"), [*RUNS, *(slow_pair(*run) for run in SLOW_RUNS)])
def test_ranks_do_not_change_a_bit(case, backend, ranks, alone, tmp_path):
    result = train(case, ranks, backend, tmp_path / "result.json", *options_of(case))
    assert same_bits(result, alone(case))


@pytest.mark.parametrize(("backend", "ranks"), MPI_RUNS)
def test_mpi_does_not_change_a_bit(backend, ranks, alone, tmp_path):
    result = train(MPI_CASE, ranks, backend, tmp_path / "result.json", *options_of(MPI_CASE))
    assert same_bits(result, alone(MPI_CASE))


@pytest.mark.parametrize("ranks", [3, 7])
def test_uneven_blocks_and_idle_ranks(backend, ranks, tmp_path):
    case = EXAMPLE / "cases" / "gen_h4_t5_k3.json"
    options = ("--iterations", "5", "--forward-passes", "5")
    one = train(case, 1, "local", tmp_path / "one.json", *options)
    many = train(case, ranks, backend, tmp_path / "many.json", *options)
    assert same_bits(one, many)
