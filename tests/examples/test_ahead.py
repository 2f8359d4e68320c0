"""What `ahead.py` compiles is what a training calls."""

import ahead
import pytest
from numba import typeof
from training.plan import Options
from training.run import Run
from training.share import load_case, shared_setting


@pytest.mark.ranks(1, backends=["shm", "local"])
def test_a_training_has_the_types_that_were_compiled_ahead(comm):
    alone = ahead.AloneOnLocal() if comm.backend == "local" else ahead.AloneOnShm()
    with shared_setting(comm, load_case(comm, ahead.CASE)) as setting:
        run = Run(setting, Options())
        types = tuple(typeof(each) for each in run.arguments(run.trace))
        run.close()
    assert types == ahead.types_of_training(alone)
