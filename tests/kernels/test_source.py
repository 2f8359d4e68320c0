"""A comment at each atomic operation names its partner; few files may touch shared memory."""

import ast
import collections
import pathlib
import re

import pytest
from cobre_kernels.collective import calls

import cobre_comm
from tests.kernels import shared_words, source
from tests.kernels.source import KERNELS, RELEASES, Operation

pytestmark = pytest.mark.quick
SHM = pathlib.Path(cobre_comm.__file__).parent / "backends" / "shm"


def test_table_names_every_word_and_operation():
    rows = source.documented()
    written = {operation for row in rows for operation in row.writes | row.reads}
    assert written == {call.operation for call in source.atomic_calls()}
    assert {word for row in rows for word in row.words} == set(shared_words.WORDS)


# Operations on any word: only their caller knows the word, so only the caller names the partner.
SILENT = {
    Operation("machine/access.store_word_kernel", "store_release"),
    Operation("machine/access.exchange_word_kernel", "compare_exchange"),
}


def test_releases_name_their_partner_where_they_stand():
    rows = source.documented()
    for call in source.atomic_calls():
        if call.operation.name in RELEASES and call.operation not in SILENT:
            names = "|".join(source.partners(rows, call.operation))
            assert names, call
            named = rf"\b(?:in|with|and|or) \W*(?:func:`)?(?:[\w/]+\.)?(?:{names})\b"
            assert re.search(named, call.comment), call


def test_kernels_touch_memory_only_through_the_files_that_are_for_it():
    allowed = {
        "from_address": {"machine/elements", "machine/record"},
        "element_access": {  # of these files, only the fold gets memory to which other ranks write
            "collective/reduction/fold",
            "collective/reduction/exact_sum",
            "machine/libc",
            "mpi/calls",
            "random/draws",
        },
        "table_at": {"collective/reduction/exact_sum", "random/draws"},
        "copy_bytes": {"machine/copy", "local"},
        "cell_of": {
            f"shm/{name}"
            for name in ("wait", "step", "region", "reading", *calls.OPERATIONS.values())
        },
    }
    for path in source.sources():
        for function in source.functions(path):
            for call in source.calls_in(function, allowed):
                assert source.name_of(path) in allowed[source.called(call)], f"{path}: {call}"


def test_other_kernels_have_no_shared_memory():
    alone = [KERNELS / "local.py", KERNELS / "collective" / "reduction" / "exact_sum.py"]
    others = [*KERNELS.glob("tcp/**/*.py"), *alone]
    assert len(others) > 10
    shared = {"comm.node.control", "comm.node.buffers", "cell_of", *source.OPERATIONS}
    for path in others:
        assert not source.names_in(path) & shared, path


# A rank that arrives stores before it loads, and so does a rank that falls asleep. So at least one
# of these two ranks sees the store of the other. The same holds for a rank that writes to the array
# of another rank, and for that rank when it fails.
ORDERS = {
    "publish": ["store_relaxed"] * 3 + ["store_seq_cst", "load_seq_cst", "futex_wake_all"],
    "_sleep": ["fetch_add", "load_seq_cst"],
    "announce": ["store_seq_cst", "futex_wake_all"],
    "_write_piece": ["store_seq_cst", "load_seq_cst", "write_process", "store_release"],
    "abandon_body": ["announce", "await_writers"],
}


@pytest.mark.parametrize("name", ORDERS)
def test_operations_are_in_the_order_that_lets_one_rank_see_the_other(name):
    [function] = [
        function
        for path in (KERNELS / "shm").glob("*.py")
        for function in source.functions(path)
        if function.name == name
    ]
    calls = source.calls_in(function, source.OPERATIONS | {n for o in ORDERS.values() for n in o})
    in_order = [source.called(call) for call in sorted(calls, key=lambda call: call.lineno)]
    assert in_order[: len(ORDERS[name])] == ORDERS[name]


def test_python_touches_the_words_of_a_segment_only_through_kernels():
    views = collections.defaultdict(set)
    for path in sorted(SHM.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "attr", None)
            if name in (
                "memory",
                "from_address",
                "from_buffer",
                "frombuffer",
                "__array_interface__",
            ):
                views[path.name].add(name)
    # segment.py takes the address and, on macOS, leaves the mark. The memory of a region is data.
    assert views == {
        "segment.py": {"memory"}, "region.py": {"memory"},
    }  # fmt: skip


def test_start_up_names_the_partner_of_what_it_publishes():
    paths = [SHM / "header.py", SHM / "rendezvous.py"]
    functions = [(path, function) for path in paths for function in source.functions(path)]
    silent = []
    for path, function in functions:
        lines = path.read_text().splitlines()
        for call in source.calls_in(function, {"store"}):
            comment = source.comment_above(lines, call.lineno)
            named = re.match(r"Release: pairs with the load of \w+ in (\w+)", comment)
            if named is None:
                silent.append(ast.unparse(call.args[0]).rpartition(".")[2])
            else:
                assert named.group(1) in {other.name for _, other in functions}
    # These are words of the header, which the later store of ``published`` publishes.
    assert silent == ["sources", "size", "buffer_bytes", "cast_bytes"]
