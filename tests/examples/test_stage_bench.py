"""The benchmark gives HiGHS the same stage problem that the example solves."""

import numpy as np
import pytest
from case.random_case import Shape
from drawn_cases import case_of
from highs_reference import solve_highs
from training.plan import Options

from bench.cobre.stage.draws import middle_stage, program_of, solve_draws, write_program


def matrix_of(program):
    """Return base rows and cuts of `program` as one dense matrix."""
    columns, rows, _, hydros, cuts, _, _ = program.sizes
    a = np.zeros((rows + cuts, columns))
    line = np.repeat(np.arange(rows), np.diff(program.start))
    a[line, program.index] = program.value
    a[rows:, : hydros + 1] = program.rows
    return a


@pytest.mark.slow
def test_the_program_for_highs_has_the_values_that_the_example_finds(comm, tmp_path):
    case, options = case_of(Shape(8, 5, 6, 10), 1), Options(iterations=8, trajectories=8)
    with middle_stage(comm, case, 5, options, 40) as trained:
        for stage in (trained, trained.with_cuts(0)):
            program, solved = program_of(stage), solve_draws(stage)
            a, cuts = matrix_of(program), stage.cuts()
            above = np.full(cuts, np.inf)
            assert len(program.level) == 50
            for level, value in zip(program.level, solved.values, strict=True):
                low, high = np.append(level, program.low), np.append(level, above)
                bounds = program.lower, program.upper
                status, right = solve_highs(program.cost, a, (low, high), bounds)
                assert status == "kOptimal"
                assert value == pytest.approx(right, rel=1e-9)
            # The rows of the cuts are those of the pool, to the last bit.
            scale = program.rows[:, -1]
            assert np.array_equal(program.coef[:-1].T, -program.rows[:, :-1] / scale[:, None])
            assert np.array_equal(program.coef[-1], program.low / scale)
        assert trained.cuts() >= 40
        write_program(program_of(trained), tmp_path / "problem")
    size = (tmp_path / "problem").stat().st_size
    assert size == sum(array.nbytes for array in program_of(trained))
