import json
import pickle
import re
import traceback
from pathlib import Path

import pytest

import cobre_comm
from cobre_comm import (
    AllocationFailed,
    BackendError,
    BackendNotAvailable,
    CollectiveFailed,
    CommError,
    InitializationFailed,
    InvalidBackend,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
    MissingConfiguration,
    WorkerError,
    failure,
)
from cobre_comm.cli import main
from cobre_comm.errors import named
from cobre_comm.explain import sections
from cobre_comm.testing.cases.faults.survivors import ranks_in

pytestmark = pytest.mark.quick
# The class of an error, its arguments, its fields, and words of its message.
COMM_ERRORS = [
    (
        CollectiveFailed,
        ("allreduce", 15, "rank 2 died", [2]),
        {"operation": "allreduce", "mpi_error_code": 15, "message": "rank 2 died", "ranks": (2,)},
        ["allreduce", "15", "rank 2 died"],
    ),
    (
        CollectiveFailed,
        ("barrier",),
        {"operation": "barrier", "mpi_error_code": 0, "message": "", "ranks": ()},
        ["barrier"],
    ),
    (
        InvalidBufferSize,
        ("allgatherv", 12, 7, "send.size must be counts[rank]"),
        {"operation": "allgatherv", "expected": 12, "actual": 7},
        ["allgatherv", "12", "7", "counts[rank]"],
    ),
    (InvalidBufferSize, ("x", 1, 2), {"expected": 1, "actual": 2}, ["1", "2"]),
    (InvalidRoot, (9, 4), {"root": 9, "size": 4}, ["9", "4"]),
    (InvalidCommunicator, ("closed",), {"message": "closed"}, ["closed"]),
    (
        AllocationFailed,
        (10**12, "64 MiB free"),
        {"requested_bytes": 10**12, "message": "64 MiB free"},
        ["1000000000000", "64 MiB free"],
    ),
]
BACKEND_ERRORS = [
    (
        BackendNotAvailable,
        ("mpi", ["local", "shm"], "no libmpi.so.12"),
        {"requested": "mpi", "available": ("local", "shm"), "reason": "no libmpi.so.12"},
        ["mpi", "local, shm", "no libmpi.so.12"],
    ),
    (
        InvalidBackend,
        ("smh", ["local", "shm"]),
        {"requested": "smh", "available": ("local", "shm")},
        ["smh", "local, shm"],
    ),
    (
        InitializationFailed,
        ("shm", "in use"),
        {"backend": "shm", "source": "in use"},
        ["shm", "in use"],
    ),
    (
        MissingConfiguration,
        ("shm", ["COBRE_SHM_RANK", "COBRE_SHM_SIZE"]),
        {"backend": "shm", "missing_vars": ("COBRE_SHM_RANK", "COBRE_SHM_SIZE")},
        ["COBRE_SHM_RANK", "COBRE_SHM_SIZE"],
    ),
]
ALL = [(CommError, *case) for case in COMM_ERRORS] + [(BackendError, *c) for c in BACKEND_ERRORS]
each = pytest.mark.parametrize(("base", "cls", "arguments", "fields", "words"), ALL)


@each
def test_fields_and_words(base, cls, arguments, fields, words):
    error = cls(*arguments)
    assert isinstance(error, base)
    assert {name: getattr(error, name) for name in fields} == fields
    assert all(word in str(error) for word in words)


@each
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_keeps_every_field(base, cls, arguments, fields, words, protocol):
    error = cls(*arguments)
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is cls
    assert vars(again) == vars(error)
    assert str(again) == str(error)


@pytest.mark.parametrize(("cls", "arguments", "fields", "words"), BACKEND_ERRORS)
def test_to_dict(cls, arguments, fields, words):
    error = cls(*arguments)
    told = json.loads(json.dumps(error.to_dict()))
    assert set(told) == {"kind", "message", "context", "suggestion", "page"}
    assert told["kind"] == cls.__name__
    assert told["message"] == str(error)
    assert {
        name: tuple(v) if isinstance(v, list) else v for name, v in told["context"].items()
    } == (fields)
    assert len(told["suggestion"]) > 20
    assert "COBRE_" in told["suggestion"]


def test_initialization_failed_keeps_its_source():
    source = OSError(28, "No space left on device")
    again = pickle.loads(pickle.dumps(InitializationFailed("shm", source)))
    assert isinstance(again.source, OSError)
    assert again.source.errno == 28
    assert "No space left" in str(again)
    json.dumps(again.to_dict())


def test_worker_error():
    inner = ZeroDivisionError("division by zero")
    error = pickle.loads(pickle.dumps(WorkerError(3, 1, inner)))
    assert (error.rank, error.exit_code) == (3, 1)
    assert isinstance(error.inner, ZeroDivisionError)
    assert "rank 3" in str(error)
    assert "ZeroDivisionError" in str(error)
    assert WorkerError(1, -9).inner is None
    assert "SIGKILL" in str(WorkerError(1, -9))
    assert "77" in str(WorkerError(1, 77))


def test_every_error_has_a_section_that_its_traceback_names(capsys):
    errors = [getattr(cobre_comm, name) for name in cobre_comm.__all__]
    for cls in (e for e in errors if isinstance(e, type) and issubclass(e, Exception)):
        assert main(["explain", f"cobre_comm.errors.{cls.__name__}"]) == 0
        assert capsys.readouterr().out.startswith(f"{cls.__name__}\n\n")
    text = "".join(traceback.format_exception(InvalidRoot(4, 2)))
    assert text.endswith(
        "4 is not a rank: pass 0 <= root < 2\nmore: cobre-comm explain InvalidRoot\n"
    )


def test_the_page_has_words_of_messages():
    code = "".join(path.read_text() for path in Path(cobre_comm.__file__).parent.rglob("*.py"))
    code = re.sub(r'"\s*f?"', "", code)  # joins the parts of a text that stands on several lines
    quoted = re.findall(r"^`(.+)`$", "\n".join(sections().values()), flags=re.MULTILINE)
    assert len(quoted) > 30
    longest = [max(re.split(r"\.\.\.|\d+| N|: ", words), key=len).strip() for words in quoted]
    # The class in this message is the user's, so our sources do not have these words.
    assert {words for words in longest if words not in code} == {"raised ValueError"}


def test_the_page_has_what_a_refused_call_and_a_lost_rank_say():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text()
    fates = [of_one for of_one, _ in failure._REASONS.values()]
    words = [*fates, *failure._HINTS.values(), failure.RECV_HINT]
    first = [re.split(r"[;(]| of (?=SUM)", each)[0].strip() for each in words]
    assert not [each for each in first if each.removeprefix("root ") not in page]


def test_ranks_have_the_fewest_words_that_read_well():
    words = {
        (): "another rank", (2,): "rank 2", (0, 1): "ranks 0 and 1", (2, 0, 1): "ranks 0-2",
        (5, 0, 1, 2): "ranks 0-2 and 5", (0, 1, 3): "ranks 0, 1 and 3",
    }  # fmt: skip
    assert {ranks: named(ranks) for ranks in words} == words
    assert all(ranks_in(f"{said}, 7 of 9") == {*ranks} for ranks, said in words.items())


def test_the_two_families_are_apart():
    assert not issubclass(CommError, BackendError)
    assert not issubclass(BackendError, CommError)
    named = {name for name in cobre_comm.__all__ if name.endswith(("Error", "Failed"))}
    assert named >= {"CommError", "BackendError", "WorkerError", "CollectiveFailed"}
