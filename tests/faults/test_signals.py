import signal

import pytest

from cobre_comm.testing.conformance import SignalTests
from cobre_comm.testing.conformance.signals import check_signal
from tests.grid import OUR_GRID

PORTABLE = {"COBRE_COMM_PORTABLE_WAIT": "1"}


class TestSignal(SignalTests):
    grid = OUR_GRID

    @pytest.mark.parametrize("operation", ["allreduce", "broadcast"])
    def test_interrupt_on_the_portable_path(self, pools, caller, operation):
        check_signal(pools, "shm", caller, operation, signal.SIGINT, PORTABLE)
