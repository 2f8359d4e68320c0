"""Names of version 0.4 work: each use warns, names the new one, and gives the same result."""

import linecache
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from cobre_kernels.collective.comm import COMM
from numba import njit

from cobre_comm import Communicator, LocalBackend, ShmBackend, ShmConfig, TcpConfig, launch, random
from cobre_comm.config import chosen, late_s
from cobre_comm.old_names import BEGINNING, OLD_NAMES, OLD_VARIABLES
from cobre_comm.testing import new_job_name
from cobre_comm.testing.cases.raised import raises
from tests.command import python

HERE = Path(__file__).parent
PROGRAM = HERE / "program_of_0_4.py"
PAGE = HERE.parents[1] / "docs" / "howto" / "moving-to-0.5.md"
# The arguments of a call by each old name; None for an attribute.
ROWS = {
    ("comm", "block"): (5,),
    ("comm", "enter"): (0,),
    ("comm", "layout"): (5, 2),
    ("random", "stream"): (1, 2),
    ("region", "block"): (0, 2),
    ("work", "costs"): (),
    ("work", "first"): None,
    ("work", "last"): None,
}
WARNED = re.compile(
    rf"^[^\n:]+:(?P<line>\d+): \w*DeprecationWarning: {BEGINNING} (?P<said>.*)$", re.MULTILINE
)


@pytest.fixture(scope="module")
def held():
    """Return an object by the name of the variable that holds it."""
    with LocalBackend() as comm:
        region, work = comm.create_shared_region(3), comm.create_work(4)
        yield {"comm": comm, "region": region, "work": work, "random": random}


def result(value, arguments):
    return value if arguments is None else value(*arguments)


def test_every_old_name_is_tried():
    assert {(holder, old) for holder, names in OLD_NAMES.items() for old in names} == {*ROWS}


@pytest.mark.parametrize(("holder", "old"), ROWS)
def test_an_old_name_warns_and_gives_the_same(held, holder, old):
    new, arguments = OLD_NAMES[holder][old], ROWS[holder, old]
    said = f"^{BEGINNING} has {holder}.{new} in place of {holder}.{old}$"
    with pytest.warns(DeprecationWarning, match=said) as warned:
        found = result(getattr(held[holder], old), arguments)
    assert [each.filename for each in warned] == [__file__]
    np.testing.assert_equal(found, result(getattr(held[holder], new), arguments))
    assert old not in dir(held[holder])
    assert new in dir(held[holder])


@njit
def by_old_names(comm, region, work):
    start, stop = comm.block(5)
    counts, displs = comm.layout(5, width=2)
    before = comm.enter(0)
    part = region.block(start, 2)
    key = random.stream(1, 2)
    return start, stop, counts[0], displs[0], before, part.size, key, work.first, work.last


@njit
def by_new_names(comm, region, work):
    start, stop = comm.share(5)
    counts, displs = comm.shares(5, width=2)
    before = comm.enter_phase(0)
    part = region.part(start, 2)
    key = random.key(1, 2)
    return start, stop, counts[0], displs[0], before, part.size, key, work.start, work.stop


def test_compiled_code_has_the_old_names_and_warns_when_it_is_compiled(held):
    values = held["comm"], held["region"], held["work"]
    with pytest.warns(DeprecationWarning, match=BEGINNING) as warned:
        found = by_old_names(*values)
    assert found == by_old_names(*values) == by_new_names(*values)
    told = set()
    for each in warned:
        new, old = re.search(r"has \w+\.(\w+) in place of (\w+\.\w+)", str(each.message)).groups()
        assert each.filename == __file__
        assert old in linecache.getline(__file__, each.lineno)
        told.add((new, old))
    of_python = {"work.costs"}
    assert {old for _, old in told} == {f"{h}.{old}" for h, old in ROWS} - of_python
    assert all(OLD_NAMES[old.partition(".")[0]][old.partition(".")[2]] == new for new, old in told)


def test_an_error_in_place_of_a_warning_names_both(held):
    uses = njit(lambda comm: comm.block(7))  # compiled by nothing else
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        told = raises(DeprecationWarning, uses, held["comm"])
    assert str(told) == f"{BEGINNING} has comm.share in place of comm.block"


def sizes(comm, first, second=0, *, third=0):
    return comm.size, first, second, third


# A call by position, what is said, and the call that 1.0 has.
FORMS = {
    "reset": (
        lambda held: held["work"].reset([3, 2, 1, 0], None),
        "takes order and costs of reset by name alone: order=..., costs=...",
        lambda held: held["work"].reset(order=[3, 2, 1, 0], costs=None),
    ),
    "create_shared_region": (
        lambda held: held["comm"].create_shared_region((2, 3), "i4", "leader").shape,
        "takes placement of create_shared_region by name alone: placement=...",
        lambda held: held["comm"].create_shared_region((2, 3), "i4", placement="leader").shape,
    ),
    "launch": (
        lambda held: launch(sizes, 1, "local", (5,)).value,
        "takes backend and args of launch by name alone: backend=..., args=...",
        lambda held: launch(sizes, 1, backend="local", args=(5,)).value,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_arguments_by_position_warn_and_give_the_same(held, form):
    old, said, new = FORMS[form]
    with pytest.warns(DeprecationWarning, match=f"^{BEGINNING} {re.escape(said)}$") as warned:
        found = old(held)
    assert [each.filename for each in warned] == [__file__]
    assert found == new(held)


def test_too_many_arguments_are_refused_as_python_does(held):
    assert "positional argument" in str(raises(TypeError, held["work"].reset, [0], [1], [2]))
    with pytest.warns(DeprecationWarning, match="by name alone"):
        told = raises(TypeError, lambda: launch(sizes, 1, "local", backend="local"))
    assert "multiple values for keyword argument 'backend'" in str(told)


def test_a_number_as_dtype_is_told_the_cure(held):
    told = str(raises(TypeError, held["comm"].create_shared_region, 2, 3))
    assert told.endswith("several lengths are one tuple: create_shared_region((2, 3))")


@pytest.mark.parametrize("size", [1, 2])
def test_launch_passes_arguments_by_name(size):
    found = launch(sizes, size, args=(5,), kwargs={"second": 6, "third": 7})
    assert found.values == [(size, 5, 6, 7)] * size
    told = str(raises(TypeError, lambda: launch(sizes, size, args=(5,), kwargs={"fourth": 8})))
    assert told.startswith("launch calls sizes(comm, *args, **kwargs), and that does not fit")
    told = str(raises(TypeError, lambda: launch(sizes, size, args=(5,), kwargs=[6])))
    assert told == "kwargs must be a mapping, got list; write kwargs={'name': x}"


@pytest.mark.parametrize("old", OLD_VARIABLES)
def test_an_old_variable_warns_and_the_new_one_holds(old):
    new = OLD_VARIABLES[old]
    with pytest.warns(DeprecationWarning, match=f"^{BEGINNING} reads {new} in place of {old}$"):
        assert chosen({old: "1"}, f"{new} {old}") == old
    assert chosen({old: "1", new: "2"}, f"{new} {old}") == new


def test_old_variables_are_read(monkeypatch):
    seat = {"COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "1"}
    told = seat | {"COBRE_LEADERS": "3", "COBRE_TCP_PRETEND_NODES": "0,1"}
    with pytest.warns(DeprecationWarning, match=BEGINNING):
        config = TcpConfig.from_env(told)
    assert (config.leaders, config.pretend_nodes) == (3, (0, 1))
    monkeypatch.setenv("COBRE_COMM_LATE_SECS", "2.5")
    with pytest.warns(DeprecationWarning, match="COBRE_TEST_LATE_SECS"):
        assert late_s("shm") == 2.5
    monkeypatch.delenv("COBRE_COMM_LATE_SECS")
    monkeypatch.setenv("COBRE_COMM_PORTABLE_WAIT", "1")
    with (
        pytest.warns(DeprecationWarning, match="COBRE_TEST_PORTABLE_WAIT"),
        ShmBackend(ShmConfig(name=new_job_name(), rank=0, size=1)) as comm,
    ):
        assert COMM.at(comm._address).portable == 1


def test_a_backend_of_another_distribution_keeps_its_methods():
    with pytest.warns(DeprecationWarning, match=r"calls Other\.enter_phase in place of") as warned:

        class Other(Communicator):
            def enter(self, number):
                return number + 1

    assert warned[0].filename == __file__
    Other.__abstractmethods__ = frozenset()
    assert Other().enter(1) == Other().enter_phase(1) == 2


def moved(text):
    """Change the marked lines of the program, as the page says."""
    for holder, names in OLD_NAMES.items():
        for old, new in names.items():
            text = re.sub(rf"\b{holder}\.{old}\b", f"{holder}.{new}", text)
    for old, new in (
        (r"(?<!\.)\bstream\b", "key"),
        (r"reset\((\[.*?\]), None\)", r"reset(order=\1, costs=None)"),
        (r'float, "leader"\)', 'float, placement="leader")'),
        (r'1, "local", \((\w+),\)\)', r'1, backend="local", args=(\1,))'),
        ("COBRE_LEADERS", "COBRE_COMM_LEADERS"),
    ):
        text = re.sub(old, new, text)
    return text


def test_a_program_of_0_4_runs_is_told_each_line_and_moves(tmp_path):
    text = PROGRAM.read_text()
    marked = {n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# old")}
    before = python("-W", "always::DeprecationWarning", PROGRAM)
    found = {(int(each["line"]), each["said"]) for each in WARNED.finditer(before.stderr)}
    assert {line for line, _ in found} == marked, before.stderr
    said = " ".join(words for _, words in found)
    for holder, names in OLD_NAMES.items():
        for old, new in names.items():
            assert f"has {holder}.{new} in place of {holder}.{old}" in said
    program = tmp_path / "program.py"
    program.write_text(moved(text))
    after = python("-W", "error::DeprecationWarning", program)
    assert after.stdout == before.stdout
    assert BEGINNING not in after.stderr


def test_the_page_has_every_row():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    for holder, names in OLD_NAMES.items():
        for old, new in names.items():
            row = [r for r in rows if f"`{holder}.{old}" in r.split("|")[1]]
            assert len(row) == 1, (holder, old)
            assert f"{holder}.{new}" in row[0].split("|")[2]
    for old, new in OLD_VARIABLES.items():
        assert [r for r in rows if f"`{old}`" in r.split("|")[1] and f"`{new}`" in r.split("|")[2]]
