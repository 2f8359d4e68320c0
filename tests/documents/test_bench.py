"""The benchmarks run, and two runs can be compared."""

import os
from pathlib import Path

import pytest

from bench.nodes import figures, scale
from bench.nodes.figures import Figures
from tests.command import python
from tests.grid import why_not

ROOT = Path(__file__).parents[2]
DEADLINE_S = 150


def output_of(*words):
    ours = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return python("-m", *words, within_s=DEADLINE_S, cwd=ROOT, env=ours).stdout


@pytest.mark.slow
def test_a_row_is_measured_beside_its_peer_and_compared(tmp_path):
    if why := why_not("openmpi"):
        pytest.skip(why)
    made = str(tmp_path / "run.json")
    said = output_of(
        "pytest", "bench/cases/test_collectives.py", "-k", "allreduce_32_B-2_ranks-openmpi-fresh",
        "--benchmark-only", "--rounds=1", "--block=0.001", f"--benchmark-json={made}",
    )  # fmt: skip
    assert "times of cobre_comm / the peer's" in said
    compared = output_of("bench.compare", made, made)
    assert compared.startswith("0 of 1 figures")


def test_pages_of_nodes_say_what_was_measured_and_is_computed():
    for page, filled in (
        (figures.PAGE, Figures(scale.MEASURED).filled),
        (scale.PAGE, scale.filled),
    ):
        text = page.read_text()
        assert "| -" in filled(text)
        assert filled(text) == text, f"python -m bench.nodes.scale writes {page} anew"


@pytest.mark.slow
def test_the_page_of_nodes_says_what_other_algorithms_would_take():
    text = scale.PAGE.read_text()
    filled = scale.filled(text, scale.SLOW)
    assert "| NCCL" in filled
    assert filled == text
