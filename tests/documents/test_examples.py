"""Every public name has an example in its docstring, and each example shows its output."""

import doctest
import inspect
import io

import numpy as np
import pytest

import cobre_comm
from cobre_comm import objects, random, testing
from tests.grid import skip_unless_here, values

ON_A_RANK_OF = {"cobre_comm.MpiBackend": "mpi"}  # MPI must not start in pytest's process


def public():
    """Yield each public function and class, and the module in which users find it."""
    for module, names in (
        (cobre_comm, cobre_comm.__all__),
        (objects, ("allgather", "broadcast", "gather")),
        (random, random.__all__),
        (testing, testing.__all__),
    ):
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value


PUBLIC = dict(public())


def documented(value):
    """Yield each name that users call, and its docstrings in our classes, except in backends."""
    yield "", [value.__doc__]
    if not inspect.isclass(value):
        return
    ours = [base for base in value.__mro__ if base.__module__.startswith("cobre_comm")]
    # The docstrings of a backend are left out: it has no public method that the contract lacks.
    ours = [base for base in ours if not base.__module__.startswith("cobre_comm.backends")]
    for name in sorted({name for base in ours for name in vars(base) if name[0] != "_"}):
        found = [vars(base)[name] for base in ours if name in vars(base)]
        if isinstance(found[-1], (property, classmethod)) or inspect.isfunction(found[-1]):
            yield f".{name}", [one.__doc__ for one in found if one.__doc__]


def lacking(value):
    return [name for name, texts in documented(value) if not any(">>>" in t for t in texts)]


def run_examples(comm, name):
    """Run the examples of a name and of its methods; return the differences."""
    shown = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for member, texts in documented(PUBLIC[name]):
        for text in texts:
            globs = {"np": np, "__name__": name}
            test = doctest.DocTestParser().get_doctest(
                inspect.cleandoc(text), globs, name + member, None, None
            )
            runner.run(test, out=shown.write)
    assert runner.tries
    return shown.getvalue()


@pytest.mark.parametrize("name", PUBLIC)
def test_examples(name):
    assert not lacking(PUBLIC[name])
    if name not in ON_A_RANK_OF:
        assert not run_examples(None, name)
        return
    backend = skip_unless_here(ON_A_RANK_OF[name])
    assert values(backend, 1, run_examples, name) == [""]


def test_a_name_without_an_example_and_a_wrong_one_are_found():
    class Bare:
        """>>> 1 + 1
        3
        """

        def method(self):
            """Do it."""

    Bare.__module__ = "cobre_comm.made"
    PUBLIC["made"] = Bare
    try:
        assert lacking(Bare) == [".method"]
        assert "Expected:\n    3\nGot:\n    2" in run_examples(None, "made")
    finally:
        del PUBLIC["made"]
