from cobre_comm.testing.conformance import ThreadAndForkTests
from cobre_comm.testing.conformance.bodies import processes
from tests.grid import OUR_GRID


class TestThreadAndFork(ThreadAndForkTests):
    grid = OUR_GRID

    def test_each_thread_its_own_communicator(self, pools, caller):
        pools.get("shm", 2).run(processes.threads_with_their_own, caller, 200)
