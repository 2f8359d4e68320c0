"""Every access to a word that processes share is atomic, with the ordering that is stated.

docs/design/memory-orderings.md says what is checked here, and what is not.
"""

import ast
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

import llvmlite.binding
import pytest
from cobre_kernels import layout
from cobre_kernels.mpi import shared

import cobre_comm
from tests.kernels import (
    ir_aarch64,
    ir_dump,
    ir_kernels,
    ir_text,
    shared_words,
    shared_words_source,
)
from tests.kernels.shared_words import WORDS
from tests.kernels.shared_words_mistakes import MISTAKES, relaxed_arrival, relaxed_look
from tests.kernels.shared_words_source import KERNELS, RELEASES, Operation

ROOT = pathlib.Path(__file__).parents[2]
PYTHON_SIDE = pathlib.Path(cobre_comm.__file__).parent
LIMIT_S = 200
SHM = [f"shm_{file}" for file in ir_dump.FILES]
MPI = [f"mpi_{file}" for file in ir_dump.FILES]
SHARED = [f"mpi_{kernel.function.__name__}" for kernel in shared.KERNELS]
pytestmark = pytest.mark.skipif(
    llvmlite.binding.llvm_version_info < (17, 0, 0), reason="reads the IR of LLVM 17 and later"
)


def operations_on(*words, but=()):
    return {(word, *operation) for word in words for operation in WORDS[word]} - set(but)


ANNOUNCED = {("CONDITION", "store", "release"), ("ARRIVED", "call", "syscall")}
OF_A_STEP = operations_on(
    "ARRIVED", "KIND", "LENGTH", "DETAIL", "CONDITION", "SLEEPERS", "GUARD",
    but=[("GUARD", "load", "acquire")],
)  # fmt: skip
OF_THE_GUARD = operations_on("GUARD", but=[("GUARD", "load", "acquire")])
OF_A_WAIT = (
    OF_A_STEP
    - OF_THE_GUARD
    - {
        ("CONDITION", "store", "release"),
        ("DETAIL", "load", "monotonic"),
    }
)
OF_A_LOOK_BACK = {("ARRIVED", "load", "acquire")} | {
    (word, "load", "monotonic") for word in ("KIND", "LENGTH", "DETAIL")
}
EXPECTED = {
    **dict.fromkeys(SHM, OF_A_STEP),
    **dict.fromkeys(MPI, OF_THE_GUARD | ANNOUNCED),
    "mpi_barrier": OF_THE_GUARD | ANNOUNCED | OF_A_LOOK_BACK,
    "mpi_enter_kernel": OF_A_WAIT,
    "mpi_agree_kernel": OF_A_LOOK_BACK,
    "mpi_hand_out_kernel": OF_A_WAIT | operations_on("VERDICT", "ERROR", "WAITED"),
    "fold": set(),
    "mpi_tell_left": ANNOUNCED,
    "access_announce_kernel": ANNOUNCED,
    "access_lock_is_held_kernel": set(),
    "guard_shut_kernel": {("GUARD", "cmpxchg", "acq_rel acquire")},
    "access_load_word_kernel": {("START", "load", "acquire")},
    "access_store_word_kernel": {("START", "store", "release")},
}
QUICK = [name for name in EXPECTED if name not in (*MPI, *SHARED)]


def program(name, *arguments, **environ):
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.kernels.{name}", *map(str, arguments)],
        cwd=ROOT, env={**os.environ, **environ}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def output_of(process):
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 0
    return output


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Start both at once: what they are needed for comes after both."""
    folder = tmp_path_factory.mktemp("ir")
    started = {
        "ir": program("ir_dump", folder, "quick"),
        "trace": program("shared_words_trace", NUMBA_DISABLE_JIT="1"),
    }
    yield folder, started
    for process in started.values():
        process.kill()
        process.wait()


def read_all(folder):
    return {path.stem: path.read_text() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def ir(programs):
    folder, started = programs
    output_of(started["ir"])
    return read_all(folder)


@pytest.fixture(scope="module")
def mpi_ir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpi_ir")
    output_of(program("ir_dump", folder, "mpi"))
    return read_all(folder)


@pytest.fixture(scope="module")
def trace(programs):
    return json.loads(output_of(programs[1]["trace"]))


def complaints(text):
    return [c for a in ir_kernels.accesses(text) if (c := shared_words.complaint(a)) is not None]


def check_kernel(name, text):
    accesses = ir_kernels.accesses(text)
    wrong = [c for a in accesses if (c := shared_words.complaint(a)) is not None]
    assert not wrong, "\n".join(wrong)
    assert shared_words.operations(accesses) == EXPECTED[name]
    assert ir_kernels.wrapped(text) == []


@pytest.mark.parametrize("name", QUICK)
def test_every_access_of_a_kernel_is_as_stated(ir, name):
    check_kernel(name, ir[f"kernel-{name}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MPI, *SHARED])
def test_every_access_of_a_kernel_over_mpi_is_as_stated(mpi_ir, name):
    check_kernel(name, mpi_ir[f"kernel-{name}"])


@pytest.mark.parametrize("name", ir_dump.PARTS)
def test_every_access_of_a_part_is_as_stated(ir, name):
    assert complaints(ir[f"part-{name}"]) == []


def test_expected_covers_every_kernel():
    assert set(ir_dump.kernels()) == set(EXPECTED)


def in_one_block(text):
    """Return what each block of a part's own function does to shared words, in order."""
    return [found for block in ir_kernels.blocks(text) if (found := list(block))]


def test_arriver_stores_its_call_then_arrives_then_looks_for_sleepers(ir):
    assert in_one_block(ir["part-publish"])[0] == [
        ("KIND", "store", "monotonic"),
        ("LENGTH", "store", "monotonic"),
        ("DETAIL", "store", "monotonic"),
        ("ARRIVED", "store", "seq_cst"),
        ("SLEEPERS", "load", "seq_cst"),
    ]


def test_sleeper_says_so_then_looks_whether_the_other_has_arrived(ir):
    assert in_one_block(ir["part-sleep"])[0] == [
        ("SLEEPERS", "atomicrmw", "add seq_cst"),
        ("ARRIVED", "load", "seq_cst"),
    ]


def test_who_leaves_says_so_then_wakes(ir):
    assert in_one_block(ir["part-announce"]) == [
        [("CONDITION", "store", "release"), *[("ARRIVED", "call", "syscall")] * 2]
    ]


# Instructions of aarch64: of the first generation, and of those with LSE and RCPC.
ON_AARCH64 = {
    ("load", "acquire"): (["ldar"], ["ldapr"]),
    ("load", "seq_cst"): (["ldar"], ["ldar"]),
    ("store", "release"): (["stlr"], ["stlr"]),
    ("store", "seq_cst"): (["stlr"], ["stlr"]),
    ("atomicrmw", "add seq_cst"): (["ldaxr", "stlxr"], ["ldaddal"]),
    ("cmpxchg", "acq_rel acquire"): (["ldaxr", "stlxr"], ["casal"]),
}


@pytest.mark.parametrize("generation", range(2))
@pytest.mark.parametrize("name", ir_dump.PARTS)
def test_what_aarch64_gets(ir, name, generation):
    if ir_aarch64.target() is None:
        pytest.skip("this llvmlite has no AArch64 target")
    text = ir[f"part-{name}"]
    stated = [
        instruction
        for block in in_one_block(text)
        for _, *operation in block
        for instruction in ON_AARCH64.get(tuple(operation), ([], []))[generation]
    ]
    features = ("", "+lse,+rcpc")[generation]
    found = ir_aarch64.ordering_instructions(text, features)
    assert collections.Counter(found) == collections.Counter(stated)
    assert stated


def test_aarch64_shows_what_is_missing():
    if ir_aarch64.target() is None:
        pytest.skip("this llvmlite has no AArch64 target")
    for function in (relaxed_arrival, relaxed_look):
        assert ir_aarch64.ordering_instructions(ir_dump.part(function, 3), "") == []


# ------------------------------------------------------------------------ mistakes in compiled code


@pytest.mark.parametrize("function", MISTAKES, ids=lambda function: function.__name__)
def test_mistake_in_compiled_code_is_found(function):
    found = complaints(ir_dump.part(function, 3))
    assert any(re.match(MISTAKES[function], text) for text in found), found


# ------------------------------------------------------------------------------ plain Python, noted

FAILURES = ("disagreement", "left", "late", "node_disagreement")
SCENARIOS = ("barriers", "broadcasts", "allreduces", "allgathervs", "mixed", "rounds", *FAILURES)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_orderings_leave_no_race(trace, scenario):
    assert trace[scenario]["races"] == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_words_see_only_what_is_stated(trace, scenario):
    data = {("data", what, how) for what in ("load", "store") for how in ("plain", "copy")}
    assert {tuple(o) for o in trace[scenario]["operations"]} <= operations_on(*WORDS) | data


def test_scenarios_take_every_path(trace):
    taken = {tuple(o) for scenario in SCENARIOS for o in trace[scenario]["operations"]}
    shared = [word for word in WORDS if word not in ("GUARD", "START")]
    assert operations_on(*shared, but=[("ARRIVED", "call", "syscall")]) <= taken


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_words_have_the_writers_that_are_stated(trace, scenario):
    for word, offset, writers in trace[scenario]["writers"]:
        owner = (offset - layout.HEADER_BYTES) // layout.RANK_BYTES
        if word in shared_words.STAGE.values():
            assert writers == [0], word
        elif word == "SLEEPERS":
            assert owner not in writers
        else:  # a word of a block or cell, or payload
            assert writers == [owner], word


def test_mistakes_are_found_by_the_orderings_alone(trace):
    found = {name: " ".join(scenario["races"]) for name, scenario in trace["planted"].items()}
    assert "not ordered after the store" in found.pop("relaxed store of ARRIVED")
    assert "not ordered after the store" in found.pop("relaxed load of ARRIVED")
    assert "both atomic and plain" in found.pop("plain load of ARRIVED")
    assert "released before the fence" in found.pop("no fence after streamed stores")
    assert "not ordered after" in found.pop("one slot for both parities")
    assert "not ordered after" in found.pop("one half of the stage")
    assert found == {}


# -------------------------------------------------------------------------------------- the sources


def test_table_names_every_operation_and_its_partner():
    rows = shared_words_source.documented()
    written = {o for _, writes, reads in rows for o in writes | reads}
    assert written == {call.operation for call in shared_words_source.atomic_calls()}


# Their callers: whose word is stored, and who closes a communicator.
SILENT = {
    Operation("access.store_word_kernel", "store_release"),
    Operation("guard.shut_kernel", "compare_exchange"),
}


def test_releases_name_their_partner_where_they_stand():
    rows = shared_words_source.documented()
    for call in shared_words_source.atomic_calls():
        if call.operation.name in RELEASES and call.operation not in SILENT:
            partners = shared_words_source.partners(rows, call.operation)
            assert any(re.search(rf"\b{p}\b", call.comment) for p in partners), call


def test_kernels_touch_memory_only_through_the_files_that_are_for_it():
    arrays = {"exact_sum", "fold", "libc", "mpi/counts"}  # none is given a word of the table
    raw = {
        "carray": arrays,
        "as_pointer": arrays | {"indirect"},
        "from_address": set(),
        "cell_of": {"wait", "shm/step"},
        "rank_block": {"wait", "shm/step"},
        "copy_bytes": {"copy", "local/allgatherv", "local/allreduce"},
    }
    for path in shared_words_source.sources():
        name = shared_words_source.name_of(path)
        for function in shared_words_source.functions(path):
            for call in shared_words_source.calls_in(function, raw):
                assert name in raw[shared_words_source.called(call)], f"{name}.{function.name}"


def test_other_kernels_have_no_shared_memory():
    others = [*KERNELS.glob("tcp/*.py"), *KERNELS.glob("local/*.py"), KERNELS / "exact_sum.py"]
    shared = {"layout.CONTROL", "layout.BUFFERS", "cell_of", "rank_block"}
    shared |= shared_words_source.OPERATIONS
    for path in others:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name | ast.Attribute):
                names = {ast.unparse(node), ast.unparse(node).rpartition(".")[2]}
                assert not names & shared, f"{path}: {names}"
    covered = {kernel.function.__code__.co_filename for kernel in ir_dump.kernels().values()}
    covered |= {str(path) for path in others}
    for path in shared_words_source.sources():
        for function in shared_words_source.functions(path):
            if any(shared_words_source.called(d) == "kernel" for d in calls_of(function)):
                assert str(path) in covered, f"{path}: nobody reads the IR of {function.name}"


def calls_of(function):
    return [d for d in function.decorator_list if isinstance(d, ast.Call)]


def test_python_touches_the_words_of_a_segment_only_through_kernels():
    views = collections.defaultdict(set)
    for path in sorted((PYTHON_SIDE / "backends" / "shm").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "attr", None)
            if name in ("memory", "from_address", "from_buffer", "frombuffer"):
                views[path.name].add(name)
    # segment.py takes the address and, on macOS, leaves the mark; a region's memory is data.
    assert views == {"segment.py": {"memory", "from_buffer"}, "region.py": {"memory", "frombuffer"}}


def test_start_up_names_the_partner_of_what_it_publishes():
    path = PYTHON_SIDE / "backends" / "shm" / "rendezvous.py"
    functions = {function.name: function for function in shared_words_source.functions(path)}
    lines = path.read_text().splitlines()
    silent = []
    for function in functions.values():
        for call in shared_words_source.calls_in(function, {"_set_word"}):
            comment = shared_words_source.comment_above(lines, call.lineno)
            named = re.match(r"Release: pairs with the load of \w+ in (\w+)", comment)
            if named is None:
                silent.append(function.name)
            else:
                assert named.group(1) in functions
    assert silent == ["_lead", "_lead"]  # the header and PID of rank 0: PUBLISHED publishes both


def test_torn_mark_cannot_be_taken_for_another():
    marks = [m.to_bytes(8, "little") for m in (layout.MAGIC, layout.UNFINISHED)]
    assert sum(a != b for a, b in zip(*marks, strict=True)) == 1


# ---------------------------------------------------------------------------------------- the stack


# A wait reads the clock and takes room for it as often as it looks, perhaps for hours.
@pytest.mark.parametrize("name", QUICK)
def test_no_loop_takes_stack(ir, name):
    functions = ir_text.parse(ir[f"kernel-{name}"]).values()
    late = [
        function.name
        for function in functions
        for block in list(function.blocks.values())[1:]
        if any(instruction.operation == "alloca" for instruction in block)
    ]
    assert late == []
