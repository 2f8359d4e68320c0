"""Phases of a backend that derives from ``Communicator`` alone."""

from cobre_comm import Communicator
from cobre_comm.testing.cases.raised import raises


class Other(Communicator):
    """A backend that inherits all that phases need."""


class Counting(Other):
    """A backend that counts phases."""

    def __init__(self):
        self.names, self.under_way, self.entered = [""], 0, []

    def phase_number(self, name):
        super().phase_number(name)
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def enter_phase(self, number):
        before, self.under_way = self.under_way, number
        self.entered.append(self.names[number])
        return before


Other.__abstractmethods__ = Counting.__abstractmethods__ = frozenset()


def end_by_an_exception(comm):
    with comm.phase("outer"):
        with comm.phase("inner"):
            pass
        raise KeyError


def go_through_phases(comm):
    raises(KeyError, end_by_an_exception, comm)
    raises(ValueError, comm.phase, "")
    raises(TypeError, comm.phase_number, 3)


def test_a_program_with_phases_runs_where_they_are_not_counted():
    comm = Other()
    go_through_phases(comm)
    assert comm.enter_phase(comm.phase_number("outer")) == 0


def test_a_backend_counts_phases_by_two_methods():
    comm = Counting()
    go_through_phases(comm)
    assert comm.entered == ["outer", "inner", "outer", ""]
