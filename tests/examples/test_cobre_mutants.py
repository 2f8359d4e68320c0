"""We refuse what Cobre refuses, and name file, row and column; else our bound is Cobre's."""

import pytest
import train
from training.run import run_training

from tests.examples.cobre_changes import PLAIN, REFUSED
from tests.examples.cobre_mutants import MUTANTS, make_mutant, write_base


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mutants") / "base"
    write_base(folder)
    return folder


def test_the_table_has_what_it_is_for():
    assert sum(m.cobre is REFUSED for m in MUTANTS.values()) > 40
    assert all(m.ours is not None for m in MUTANTS.values() if m.cobre is REFUSED)
    assert sum(m.ours is None and m.cobre != PLAIN for m in MUTANTS.values()) > 5


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_refused_or_reaches_the_bound_of_cobre(name, base, tmp_path, comm, capsys):
    mutant, folder = MUTANTS[name], make_mutant(base, name, tmp_path / name)
    if mutant.ours is None:
        training = run_training(folder, comm)
        assert training.lower_bound[-1] == pytest.approx(mutant.cobre, rel=1e-8)
        return
    assert train.main([str(folder), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert mutant.ours in told
    assert told.startswith(name)
    assert told.count("\n") == 1
