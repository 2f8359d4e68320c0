"""The page of common mistakes: ranks run its examples, which raise the sentences that it quotes."""

import array
import functools
import logging
import operator
import pickle
import re
import runpy
import sys
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numba import TypingError, njit, prange

import cobre_comm
from cobre_comm import LocalBackend, ReduceOp, launch, objects, random
from cobre_comm.arguments import mistakes
from cobre_comm.errors import InvalidBufferSize, InvalidCommunicator, MissingConfiguration
from cobre_comm.explain import main
from cobre_comm.testing import run_ranks

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "mistakes.md"
LATE = "Two communicators in a different order"
OF_LAUNCH = "A function that launch cannot send"
GLOBAL = "A global communicator in a cached function"
WORDS = [text for name, text in vars(mistakes).items() if name.isupper() and text.isalpha()]
ALONE = "A communicator that one rank makes alone"  # this example would wait for a minute


def sections():
    """Return the programs and the quoted sentence of each section, by its title."""
    for part in re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        title = part.partition("\n")[0]
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", part, flags=re.DOTALL | re.MULTILINE)
        programs = [text for kind, text in blocks if kind == "python"]
        said = [text.strip() for kind, text in blocks if kind == "text"]
        yield title, programs, said[0] if said else None


SECTIONS = list(sections())
PACKAGE = str(Path(cobre_comm.__file__).parent)
PROGRAMS = [
    (program, said if number == 0 else None)
    for title, programs, said in SECTIONS
    for number, program in enumerate(programs)
    if title not in (LATE, OF_LAUNCH, GLOBAL, ALONE)
]


def frames_of_ours(error):
    """Count the frames of this package in a traceback; frames of numba's compiler do not count."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    is_compiling = any("/numba/core/" in file for file in files)
    return 0 if is_compiling else sum(file.startswith(PACKAGE) for file in files)


def lines_raised(comm, programs):
    """Run each program on a communicator of its own; return the lines that it has raised."""
    raised = []
    for program in programs:
        names = {
            "np": np,
            "njit": njit,
            "prange": prange,
            "objects": objects,
            "random": random,
            "ReduceOp": ReduceOp,
            "launch": launch,
        }
        names |= {"x": np.ones(3), "out": np.empty(3)}
        lines, depth = [], 0
        try:
            with comm.split(0) as names["comm"]:
                exec(program, names)
        except Exception as error:
            lines = "".join(traceback.format_exception_only(error)).splitlines()
            depth = frames_of_ours(error)
        assert depth <= 1, program
        raised.append(lines)
        comm.barrier()
    return raised


@pytest.fixture(scope="module")
def raised():
    """Return each program, its sentence, and the lines that all ranks have raised."""
    ranks = run_ranks("shm", 2, lines_raised, [program for program, _ in PROGRAMS])
    return [
        (*program, [line for lines in each for line in lines])
        for program, *each in zip(PROGRAMS, *ranks, strict=True)
    ]


def test_each_example_raises_its_sentence_and_each_cure_none(raised):
    assert len(PROGRAMS) > 35
    for program, said, lines in raised:
        assert (said in lines) if said else not lines, (program, lines)


def test_two_communicators_in_a_different_order():
    (program, *_), said = next((p, s) for title, p, s in SECTIONS if title == LATE)
    limit = {"COBRE_COMM_TIMEOUT_SECS": "5"}
    raised = run_ranks("shm", 2, lines_raised, [program], env=limit)
    # The rank that reaches its limit second may get the error of the first rank instead.
    said = said.replace("60 s", "5 s")
    late = [lines for (lines,) in raised if {said, said.replace("rank 1", "rank 0")} & {*lines}]
    assert late, raised
    # On a busy machine the other rank may have left its call when the journals are read.
    where = r"in communicator \d+, of 2 ranks: #\d+ barrier\(\) "
    assert any(re.search(where, lines[-1]) for lines in late), late


def test_a_function_that_launch_cannot_send(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    # The main module of a worker of pytest has no file, like the main module of interactive Python.
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    (program,), said = next((p, s) for title, p, s in SECTIONS if title == OF_LAUNCH)
    with pytest.raises(ValueError, match="cannot import") as caught:
        exec(program, {"launch": launch, "__name__": "__main__"})
    assert f"ValueError: {caught.value}".startswith(said)
    assert caught.value.__notes__ == ["more: cobre-comm explain launch"]


class Quantity(np.ndarray):
    """An array with a meaning of its own, as packages for units have."""


REGION = (
    "a shared region is no array",
    "region.as_slice() reads it, and region.part(start, stop)",
)
AS_REGION = ("must be a NumPy array, got a shared region", REGION[1])
MASKED = ("got a MaskedArray of shape", "{0}.filled(value) or {0}.compressed()")
QUANTITY = ("got a Quantity of shape", "numpy.asarray({0})")
LOOP = ("a work is no sequence in @njit code", "item = work.claim()")


def told(pair, name):
    return pair[0], pair[1].format(name)


# What a user types, the class of the error, its text, and the next step that it names. The examples
# of the page are left out, because the page has their sentences.
TYPED = [
    ("comm.allreduce(region, x)", TypeError, *AS_REGION),
    ("comm.allreduce(x, region)", TypeError, *AS_REGION),
    ("comm.broadcast(region)", TypeError, *AS_REGION),
    ("comm.allgather(region, x)", TypeError, *AS_REGION),
    ("comm.allgatherv(x, region, [3], [0])", TypeError, *AS_REGION),
    ("comm.allgatherv(x, x, region, [0])", TypeError, *AS_REGION),
    ("comm.gatherv(x, region, [3], [0])", TypeError, *AS_REGION),
    ("comm.exact_sum(region)", TypeError, *AS_REGION),
    ("work.reset(order=region)", TypeError, *AS_REGION),
    ("njit(lambda c, r, o: c.allreduce(r, o))(comm, region, x)", TypeError, *AS_REGION),
    ("njit(lambda c, r, o: c.allgatherv(o, o, r, r))(comm, region, x)", TypeError, *AS_REGION),
    ("np.asarray(region)", TypeError, *REGION),
    ("np.array(region)", TypeError, *REGION),
    ("np.sum(region)", TypeError, *REGION),
    ("region[0]", TypeError, *REGION),
    ("region.__setitem__(0, 1)", TypeError, *REGION),
    ("len(region)", TypeError, *REGION),
    ("list(region)", TypeError, *REGION),
    ("1 in region", TypeError, *REGION),
    ("njit(lambda r: r[0])(region)", TypeError, *REGION),
    ("njit(lambda r: len(r))(region)", TypeError, *REGION),
    ("njit(lambda r: [x for x in r])(region)", TypeError, *REGION),
    ("njit(set_first)(region)", TypeError, *REGION),
    ("njit(lambda w: [i for i in w])(work)", TypeError, *LOOP),
    ("njit(lambda w: w[0])(work)", TypeError, *LOOP),
    *[
        (typed.format(given), TypeError, *told(pair, name))
        for given, pair in (("masked", MASKED), ("quantity", QUANTITY))
        for typed, name in (
            ("comm.allreduce({}, x)", "send"),
            ("comm.allreduce(x, {})", "recv"),
            ("comm.broadcast({})", "buf"),
            ("comm.allgather({}, x)", "send"),
            ("comm.allgatherv(x, {}, [3], [0])", "recv"),
            ("comm.gatherv({}, x, [3], [0])", "send"),
            ("comm.exact_sum({})", "values"),
            ("comm.allgatherv(x, x, {}_items[:1], [0])", "counts"),
            ("comm.allgatherv(x, x, [3], {}_items[:1])", "displs"),
            ("work.reset(order={}_items)", "order"),
            ("work.reset(costs={})", "costs"),
            ("random.uniform(random.key(1), {}_items)", "i"),
        )
    ],
    ("comm.allreduce(memoryview(x), x)", TypeError, "got memoryview", "numpy.asarray makes one"),
    ("comm.allreduce(array('d', [1.0]), x)", TypeError, "got array", "numpy.asarray makes one"),
    ("comm.broadcast(has_array)", TypeError, "got HasArray", "numpy.asarray makes one"),
    ("comm.broadcast(np.float64(1))", TypeError, "got float64", "numpy.array makes one"),
    (
        "njit(lambda c, m, o: c.allreduce(m, o))(comm, memoryview(x), x)",
        TypeError,
        "got memoryview",
        "numpy.asarray makes one",
    ),
    ("Communicator()", TypeError, "Communicator() makes none", "create_communicator()"),
    ("SharedRegion()", TypeError, "SharedRegion() makes none", "comm.create_shared_region(shape)"),
    (
        "create_communicator('shm')",
        MissingConfiguration,
        "needs COBRE_SHM_NAME",
        "`cobre-comm run -n 4 --backend shm script.py`",
    ),
    ("pickle.dumps(region)", TypeError, "cannot be pickled", "region.as_slice().copy()"),
    ("pickle.dumps(work)", TypeError, "cannot be pickled", "numbers of items"),
    ("closed.barrier()", InvalidCommunicator, "is closed", "create another one"),
    ("closed.stats()", InvalidCommunicator, "is closed", "create another one"),
    ("closed_region.as_slice()", InvalidCommunicator, "is closed", "create another one"),
    ("closed_region.fence()", InvalidCommunicator, "is closed", "create another one"),
    ("comm.barrier(1)", TypeError, "barrier() takes no arguments", "1 given"),
    ("comm.allreduce(x, x[:2])", InvalidBufferSize, "expected 3 elements", "the same length"),
    ("comm.enter_phase(77)", ValueError, "enter_phase: number must be", "comm.phase_number(name)"),
    ("objects.gather(comm, 1, 'a')", TypeError, "root must be an integer", "explain integer"),
    ("random.key(1.5)", TypeError, "a name must be an integer", "explain integer"),
    ("launch(print, 0)", ValueError, "number of ranks", "between 1 and 4096"),
    ("ReduceOp.AVG", AttributeError, "ReduceOp.AVG is", "SUM here, divided by comm.size"),
    ("ReduceOp.sum", AttributeError, "ReduceOp.sum does not exist", "there are SUM, MIN"),
    ("ReduceOp['MAXLOC']", KeyError, "ReduceOp.MAXLOC", "comm.allgather"),
    ("comm.objects", AttributeError, "is a module", "from cobre_comm import objects"),
    ("comm.mean", AttributeError, "comm.mean is", "comm.sum(x) / comm.size"),
    ("comm.create_shared_region(3, 4)", TypeError, "got int 4", "create_shared_region((3, 4))"),
    ("comm.create_shared_region(3, 'flat64')", TypeError, "dtype must be", "explain dtype"),
    ("len(work)", TypeError, "a work is no sequence", "work.count is the number of items"),
    ("work[0]", TypeError, "a work is no sequence", "item = work.claim()"),
    ("launch(rank_of, 1)[0]", TypeError, "returns a LaunchResult", "result.values"),
    ("len(launch(rank_of, 1))", TypeError, "returns a LaunchResult", "result.values"),
    ("list(launch(rank_of, 1))", TypeError, "returns a LaunchResult", "result.values"),
    ("launch(set_nothing, 2)", TypeError, "that does not fit set_nothing()", "is the communicator"),
    ("launch(rank_of, 2, args=(1,))", TypeError, "launch calls rank_of(comm, *args)", "(comm)"),
    ("launch(functools.partial(rank_of), 2, args=(1,))", TypeError, "does not fit", "too many"),
    ("launch(rank_of, n=2)", TypeError, "launch() got an unexpected", "argument 'n'"),
    ("create_communicator(backend='shm')", TypeError, "got an unexpected", "argument 'backend'"),
    ("launch(awaited, 1)", TypeError, "awaited is an async function", "asyncio.run"),
    ("launch(yielding, 1)", TypeError, "yielding is a generator function", "return a list"),
]


def rank_of(comm):
    return comm.rank


def set_nothing():
    """Lacks a parameter for the communicator."""


async def awaited(comm):
    return comm.rank


def yielding(comm):
    yield comm.rank


def set_first(region):
    region[0] = 1.0


class HasArray:
    """An object with memory of its own, like a column of pandas or a tensor."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(3)


@pytest.mark.parametrize(("typed", "kind", "sentence", "step"), TYPED, ids=lambda each: str(each))
def test_what_is_typed_is_told_the_next_step(typed, kind, sentence, step):
    with LocalBackend() as comm, LocalBackend() as closed:
        region, closed_region = comm.create_shared_region(3), comm.create_shared_region(3)
        closed_region.close()
        closed.close()
        names = {
            **globals(),
            **{name: getattr(cobre_comm, name) for name in cobre_comm.__all__},
            "array": array.array,
            "pickle": pickle,
            "comm": comm,
            "closed": closed,
            "region": region,
            "closed_region": closed_region,
            "work": comm.create_work(3),
            "x": np.ones(3),
            "has_array": HasArray(),
            "masked": np.ma.masked_values([1.0, 1e20, 1.0], 1e20),
            "masked_items": np.ma.masked_equal([2, 1, 0], 1),
            "quantity": np.arange(3.0).view(Quantity),
            "quantity_items": np.arange(3).view(Quantity),
        }
        with pytest.raises(kind) as caught:
            eval(typed, names)
        said = "".join(traceback.format_exception_only(caught.value))
        assert sentence in said
        assert step in said
        assert frames_of_ours(caught.value) <= 1, traceback.format_tb(caught.tb)
        comm.barrier()


def test_calls_that_launch_cannot_judge_are_made():
    """`launch` cannot know which arguments a function of C or a decorated function takes."""

    @functools.wraps(rank_of)
    def more(comm, number):
        return comm.rank + number

    assert launch(more, 1, args=(5,)).value == 5
    assert launch(operator.methodcaller("sum", 1.5), 1).value == 1.5
    assert launch(njit(rank_of), 1).value == 0
    # this object is true by `__bool__`; without that method Python would ask for its length
    assert launch(rank_of, 1)


def test_a_work_that_is_no_sequence_can_still_be_looped_over():
    with LocalBackend() as comm:
        work = comm.create_work(3)
        assert work
        assert [list(work), list(work)] == [[0, 1, 2], []]
    assert [op.name for op in ReduceOp][:2] == ["SUM", "MIN"]
    assert ReduceOp["SUM"] is ReduceOp.SUM is pickle.loads(pickle.dumps(ReduceOp.SUM))
    assert not hasattr(ReduceOp, "_sum")


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # this warning is about matrix
@pytest.mark.parametrize("cls", [np.memmap, np.recarray, np.matrix])
def test_classes_of_numpy_that_add_no_meaning_are_taken(cls, tmp_path):
    if cls is np.memmap:
        x = np.memmap(tmp_path / "x", dtype="f8", mode="w+", shape=(1, 3))
        x[:] = 2.0
    elif cls is np.recarray:
        x = np.full(3, 2.0, dtype=[("a", "f8")]).view(np.recarray)
    else:
        x = np.matrix([[2.0, 2.0, 2.0]])
    plain = np.zeros(x.shape, [("a", "f8")] if cls is np.recarray else "f8")

    def calls(comm, x, plain):
        comm.broadcast(x)
        comm.allgather(x, plain)

    with LocalBackend() as comm:
        for function in (calls, njit(calls)):
            plain[:] = 0
            function(comm, x, plain)
            assert plain.tobytes() == np.full(3, 2.0).tobytes()
        if cls is not np.recarray:
            comm.allreduce(x, x)
            assert comm.exact_sum(x) == 6.0


def test_numba_refuses_a_masked_array():
    masked = np.ma.masked_values([1.0, 1e20], 1e20)
    with LocalBackend() as comm, pytest.raises(TypingError, match="MaskedArray"):
        njit(lambda comm, x: comm.allreduce(x, x))(comm, masked)


def test_a_frame_of_the_user_s_is_kept():
    """If a user's function raises an error, the traceback ends in that function."""

    class Faulty:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("no such file")

    with LocalBackend() as comm, pytest.raises(ValueError, match="no such file") as caught:
        comm.create_work(3).reset(order=Faulty())
    assert caught.traceback[-1].name == "__array__"


GLOBAL_SCRIPT = """
import numpy as np
from numba import njit
from cobre_comm import create_communicator
{}
{}
"""


def test_a_global_communicator_in_a_cached_function(written):
    """numba warns in the words of the page, but not if the communicator is an argument."""
    programs = next(programs for title, programs, _ in SECTIONS if title == GLOBAL)
    quoted = re.search(r"^NumbaWarning: (.*)$", PAGE.read_text(), re.MULTILINE)[1]
    calls = ("total(np.ones(3), np.empty(3))", "comm = create_communicator()\n{}")
    for program, call in zip(
        programs,
        (calls[0], calls[1].format("total(comm, np.ones(3), np.empty(3))")),
        strict=True,
    ):
        path = written(GLOBAL_SCRIPT.format(program, call))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            runpy.run_path(str(path))
        warned = " ".join(" ".join(str(each.message) for each in caught).split())
        assert (quoted in warned) == (program is programs[0]), warned


@pytest.mark.parametrize("word", ["prange", "fence", "launcher", "Seeds", "as_slice", *WORDS])
def test_a_mistake_is_explained_by_a_word_of_its_title(word, capsys):
    assert main([word]) == 0
    title, _, text = capsys.readouterr().out.partition("\n\n")
    assert word in title
    for part in ("Symptom. ", "Cause. ", "Cure. "):
        assert part in text
    assert "`" * 3 not in text


def test_the_note_of_an_error_leads_to_its_section(raised):
    """The error of an example has a note: the command that prints the section of the example."""
    noted = {
        program: {line for line in lines if line.startswith("more: ")}
        for program, said, lines in raised
        if said and said.startswith(("TypeError: ", "ValueError: "))
    }
    for title, programs, _ in SECTIONS:
        for (note,) in (noted[program] for program in programs if noted.get(program)):
            word = note.removeprefix("more: cobre-comm explain ")
            assert word.lower() in re.findall(r"\w+", title.lower()), (title, note)
    assert len([notes for notes in noted.values() if notes]) >= len(WORDS) - 2


@pytest.mark.parametrize(("typed", "meant"), [("barier", "barrier"), ("prnge", "prange")])
def test_a_misspelt_word_is_told_the_nearest(typed, meant, capsys):
    with pytest.raises(SystemExit):
        main([typed])
    assert capsys.readouterr().err.endswith(f"; did you mean {meant}?\n")
    assert main([meant]) == 0


def test_a_word_that_no_title_has_leads_to_the_sections_that_have_it(capsys):
    assert main(["barrier"]) == 0
    listed = capsys.readouterr().out
    assert "A branch on the rank around a collective" in listed
    assert "A masked array" not in listed


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        ("'int' object is not callable", "Parentheses after rank, size, backend or count"),
        ("TypeError: unsupported operand 'NoneType'", "The returned value of a collective is None"),
        ("assignment destination is read-only", "Writing to as_slice, which is read-only"),
        ("Illegal use of context-manager.", "A phase in a with block of compiled code"),
        ("read-only", "A read-only output"),
    ],
)
def test_a_sentence_of_an_error_leads_to_its_section(sentence, title, capsys):
    for words in ([sentence], sentence.split()):
        assert main(words) == 0
        assert title in capsys.readouterr().out.splitlines()


def test_a_second_loop_over_a_work_writes_one_line(caplog):
    """A loop that continues an unfinished loop writes no line, nor do loops of other threads."""
    [said] = re.findall(r"^a second loop .*$", PAGE.read_text(), re.MULTILINE)
    with LocalBackend() as comm, caplog.at_level(logging.WARNING, "cobre_comm"):
        work = comm.create_work(3)
        for _ in work:
            break
        assert list(work) == [1, 2]
        work.reset()
        with ThreadPoolExecutor(1) as pool:
            assert [len(each) for each in pool.map(list, [work, work])] == [3, 0]
        work.reset()
        assert len(list(work)) == 3
        assert not caplog.messages
        assert list(work) == list(work) == []
    assert caplog.messages == [said]


def test_all_mistakes_are_listed(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert not [title for title, *_ in SECTIONS if title not in listed]
