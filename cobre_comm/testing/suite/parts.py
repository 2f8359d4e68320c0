"""All classes of tests, one for each file of the table, and one class that holds them all."""

from __future__ import annotations

from typing import Any

from cobre_comm.testing.cases import table
from cobre_comm.testing.suite.part import Part, part


def class_name(module: str) -> str:
    """Return the class name of a file of the table: ``AllreduceTests`` for ``allreduce``."""
    return "".join(word.capitalize() for word in module.split("_")) + "Tests"


PARTS: dict[str, type[Part]] = {
    class_name(name): part(class_name(name), cases) for name, cases in table().items()
}


class ConformanceSuite(Part):
    """All tests of the suite.

    A subclass with a ``grid`` contains one class for each part, which pytest collects as
    ``TestMine::TestAllgatherv::test_layouts[uneven-mine-2-python]``. The subclass leaves a part out
    by ``TestBarrier = None``, and replaces it by a class of that name.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not hasattr(cls, "grid"):
            raise TypeError(f'{cls.__name__} has no grid: grid = Grid.of("mine")')
        for full_name, base in PARTS.items():
            name = "Test" + full_name.removesuffix("Tests")
            if name not in vars(cls):
                fields = {"grid": cls.grid, "cannot": cls.cannot, "__module__": cls.__module__}
                setattr(cls, name, type(name, (base,), fields))
