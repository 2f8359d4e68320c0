"""Generated cases are valid, repeatable and feasible."""

import json
import math

import pytest
from case.random_case import Shape, generate
from case.read import parse_case
from generate import main
from stage.units import choose_units


@pytest.mark.parametrize("hydros", [1, 5, 20])
@pytest.mark.parametrize("thermals", [0, 4])
@pytest.mark.parametrize("options", [(), ("segments", "random_demand", "stage_cost", "uneven")])
def test_generated_cases_are_valid(hydros, thermals, options):
    data = generate(Shape(hydros, thermals, 5, 3, **dict.fromkeys(options, True)), 2)
    case = parse_case(json.dumps(data).encode(), "case.json")
    assert len(case.hydros) == hydros
    assert len(case.thermals) == thermals
    assert case.stages == 5
    assert all(i >= 0.0 for stage in case.inflows for row in stage for i in row)
    assert all(h.downstream == -1 or h.downstream > j for j, h in enumerate(case.hydros))
    water, energy, money = choose_units(case)
    for unit in (*water, energy, money):
        assert unit == 2.0 ** round(math.log2(unit))


def test_equal_arguments_give_equal_cases():
    shape = Shape(4, 3, 4, 3)
    assert generate(shape, 7) == generate(shape, 7)
    assert generate(shape, 7) != generate(shape, 8)


def test_command_line_writes_a_case(tmp_path):
    out = tmp_path / "case.json"
    words = "--hydros 2 --thermals 1 --stages 3 --openings 2 --seed 5 --segments --uneven"
    assert main([str(out), *words.split()]) == 0
    assert parse_case(out.read_bytes(), "case.json").stages == 3


@pytest.mark.parametrize("words", ["--hydros 0", "--stages 0", "--openings -1", "--thermals -1"])
def test_impossible_sizes_are_refused(tmp_path, words):
    with pytest.raises(SystemExit) as caught:
        main([str(tmp_path / "case.json"), *words.split()])
    assert caught.value.code == 2
