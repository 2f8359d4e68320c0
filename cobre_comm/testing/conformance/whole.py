"""All classes of tests in one."""

from __future__ import annotations

from typing import Any

from cobre_comm.testing.conformance.allgatherv import AllgathervTests
from cobre_comm.testing.conformance.allreduce import AllreduceTests
from cobre_comm.testing.conformance.barrier import BarrierTests
from cobre_comm.testing.conformance.broadcast import BroadcastTests
from cobre_comm.testing.conformance.disagreement import DisagreementTests
from cobre_comm.testing.conformance.errors import ErrorTests
from cobre_comm.testing.conformance.exact import ExactSumTests
from cobre_comm.testing.conformance.late_ranks import LateRankTests
from cobre_comm.testing.conformance.lost_ranks import LostRankTests
from cobre_comm.testing.conformance.mid_collective import MidCollectiveTests
from cobre_comm.testing.conformance.misuse import MisuseTests
from cobre_comm.testing.conformance.properties import PropertyTests
from cobre_comm.testing.conformance.rank_size import RankSizeTests
from cobre_comm.testing.conformance.regions import RegionTests
from cobre_comm.testing.conformance.sequences import SequenceTests
from cobre_comm.testing.conformance.signals import SignalTests
from cobre_comm.testing.conformance.suite import Suite
from cobre_comm.testing.conformance.threads_and_forks import ThreadAndForkTests

PARTS: tuple[type[Suite], ...] = (
    RankSizeTests,
    BarrierTests,
    AllgathervTests,
    AllreduceTests,
    BroadcastTests,
    ExactSumTests,
    SequenceTests,
    RegionTests,
    ErrorTests,
    MisuseTests,
    DisagreementTests,
    LostRankTests,
    MidCollectiveTests,
    LateRankTests,
    SignalTests,
    ThreadAndForkTests,
    PropertyTests,
)


class ConformanceSuite(Suite):
    """All tests of the suite.

    A class that derives from it and has a ``grid`` holds one class for each part, which pytest
    collects as ``TestMine::TestAllgatherv::test_layouts[mine-2-python]``. One that should be
    different is replaced: ``TestBarrier = None``, or a class of its own.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not hasattr(cls, "grid"):
            raise TypeError(f'{cls.__name__} has no grid: grid = Grid.of("mine")')
        for part in PARTS:
            name = "Test" + part.__name__.removesuffix("Tests")
            if name not in vars(cls):
                fields = {"grid": cls.grid, "cannot": cls.cannot, "__module__": cls.__module__}
                setattr(cls, name, type(name, (part,), fields))
