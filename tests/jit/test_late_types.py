"""numba asks our objects for their types; an interrupt during the first question is not lost."""

import pytest
from numba import config

from tests.command import python

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="numba asks for no types")

PROGRAM = """
import signal
import sys

import numba
from cobre_comm import LocalBackend

REGISTER = "cobre_comm.jit.register"


@numba.njit
def take(held):
    return 1


class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == REGISTER:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)


def interrupt_the_making():
    def give_type(*arguments):
        register.give_type = give
        signal.raise_signal(signal.SIGINT)

    register = sys.modules[REGISTER]
    give, register.give_type = register.give_type, give_type


def is_interrupted(call, held):
    try:
        call(held)
    except KeyboardInterrupt:
        return True


comm = LocalBackend()
work = comm.create_work(3)
region, another = comm.create_shared_region(3), comm.create_shared_region(3)
assert REGISTER not in sys.modules
sys.meta_path.insert(0, Interrupting())
assert is_interrupted(take, comm)
assert take(comm) == 1
for held in (work, region, (another, 1)):
    interrupt_the_making()
    assert is_interrupted(take, held), held
    assert take(held) == 1
with comm.create_shared_region(3) as third:
    interrupt_the_making()
    assert is_interrupted(numba.typeof, third)
    assert take(third) == 1
    events = []
    sys.setprofile(lambda frame, event, what: events.append(frame.f_code.co_name))
    take(third), take(comm), take(work)
    sys.setprofile(None)
    assert set(events) <= {"take", "<module>"}, events  # numba finds the types by itself
try:
    take(third)
except Exception as error:
    print(error)
"""


def test_an_interrupt_when_numba_first_asks_is_raised_once(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert "closed" in python(program).stdout
