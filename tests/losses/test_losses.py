"""A training that loses ranks ends with the cuts of a training that loses no rank."""

import pytest

from tests.grid import some
from tests.losses.training import WAYS, Training, undisturbed

# the first training compiles, which takes minutes on a busy machine
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def expected():
    return undisturbed()


@pytest.mark.parametrize(
    ("way", "times"),
    some([("survive", 1)], [("survive", 3), *((way, 1) for way in WAYS)]),
)
def test_a_training_that_loses_ranks_ends_with_the_same_cuts(way, times, expected, tmp_path):
    outcome = Training(way, tmp_path, f"{way} {times}").run(times)
    assert outcome.struck, outcome.said
    assert (outcome.code, outcome.cuts_sha256) == (0, expected), outcome.said
