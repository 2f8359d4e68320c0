"""Every access of compiled code to a shared word is atomic, with the ordering that is stated.

docs/design/memory-orderings.md says what is checked here, and what is not.
"""

import collections
import re

import llvmlite.binding
import pytest

from tests.kernels import programs, shared_words
from tests.kernels.ir import aarch64, compile, kernels
from tests.kernels.ir.mistakes import ARGUMENTS, MISTAKES, relaxed_arrival, relaxed_look
from tests.kernels.shared_words import WORDS

pytestmark = pytest.mark.skipif(
    llvmlite.binding.llvm_version_info < (17, 0, 0), reason="reads the IR of LLVM 17 and later"
)
KERNELS = compile.kernels()
READ = [name for name in KERNELS if name not in compile.PRIVATE]


def of(*words):
    return {(word, *operation) for word in words for operation in WORDS[word]}


CALL = ("Cell.signature", "Cell.length", "Cell.detail")
GUARD = of("Comm.guard") - {("Comm.guard", "load", "acquire")}
LEAVING = {("RankBlock.condition", "store", "release"), ("Cell.arrived", "call", "syscall")}
STEP = of("Cell.arrived", *CALL, "RankBlock.condition", "RankBlock.sleepers")
STEP -= {("RankBlock.condition", "store", "release"), ("Cell.detail", "load", "monotonic")}
LOOK_BACK = {("Cell.arrived", "load", "acquire")} | {(w, "load", "monotonic") for w in CALL}
COLLECTIVES = ("barrier", "broadcast", "allreduce", "allgatherv")
OUTCOME = of("Staging.status", "Staging.mpi_error", "Staging.waited_ns")
EXPECTED = {
    **{f"collective/entry.{name}_entry": GUARD for name in COLLECTIVES},
    **{f"shm/{name}.{name}_body": STEP for name in COLLECTIVES},
    "shm/step.abandon_body": LOOK_BACK | LEAVING,
    "shm/step.announce_closed_kernel": LEAVING,
    "mpi/barrier.barrier_body": LOOK_BACK,
    "mpi/round.enter_round_kernel": LOOK_BACK,
    "mpi/round.hand_out_kernel": OUTCOME | LOOK_BACK,
    "mpi/messages.goodbye_kernel": LEAVING,
    "collective/guard.shut_kernel": {("Comm.guard", "cmpxchg", "acq_rel acquire")},
    "machine/access.load_word_kernel": {("Word.value", "load", "acquire")},
    "machine/access.store_word_kernel": {("Word.value", "store", "release")},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("ir")
    programs.output_of(programs.start("ir.compile", found))
    return found


def text_and_arguments(folder, name):
    text = compile.path_of(folder, name).read_text()
    if name in KERNELS:
        return text, compile.arguments_of(KERNELS[name])
    return text, compile.PARTS[name][1]


@pytest.mark.parametrize("name", READ)
def test_every_access_of_a_kernel_is_as_stated(folder, name):
    text, arguments = text_and_arguments(folder, name)
    accesses = kernels.accesses(text, arguments)
    wrong = kernels.complaints(accesses)
    assert not wrong, "\n".join(wrong)
    assert shared_words.operations(accesses) == EXPECTED.get(name, set())
    assert kernels.wrapped(text) == []
    # A wait reads the clock and takes room for it as often as it looks, perhaps for hours.
    assert kernels.stack_in_loops(text) == []


@pytest.mark.parametrize("name", compile.PARTS)
def test_every_access_of_a_part_is_as_stated(folder, name):
    assert kernels.complaints(kernels.accesses(*text_and_arguments(folder, name))) == []


def test_expected_are_kernels():
    assert set(EXPECTED) <= set(READ)


def first_block(folder, part):
    return kernels.in_one_block(*text_and_arguments(folder, part))[0]


def test_arriver_stores_its_call_then_arrives_then_looks_for_sleepers(folder):
    assert first_block(folder, "publish") == [
        ("Cell.signature", "store", "monotonic"),
        ("Cell.length", "store", "monotonic"),
        ("Cell.detail", "store", "monotonic"),
        ("Cell.arrived", "store", "seq_cst"),
        ("RankBlock.sleepers", "load", "seq_cst"),
    ]


def test_sleeper_says_so_then_looks_whether_the_other_has_arrived(folder):
    assert first_block(folder, "sleep") == [
        ("RankBlock.sleepers", "atomicrmw", "add seq_cst"),
        ("Cell.arrived", "load", "seq_cst"),
    ]


def test_rank_that_leaves_says_so_then_wakes(folder):
    wakes = [("Cell.arrived", "call", "syscall")] * 2
    assert first_block(folder, "announce") == [("RankBlock.condition", "store", "release"), *wakes]


# Instructions of aarch64: of the first generation, and of those with LSE and RCPC.
ON_AARCH64 = {
    ("load", "acquire"): (["ldar"], ["ldapr"]),
    ("load", "seq_cst"): (["ldar"], ["ldar"]),
    ("store", "release"): (["stlr"], ["stlr"]),
    ("store", "seq_cst"): (["stlr"], ["stlr"]),
    ("atomicrmw", "add seq_cst"): (["ldaxr", "stlxr"], ["ldaddal"]),
    ("cmpxchg", "acq_rel acquire"): (["ldaxr", "stlxr"], ["casal"]),
}
FEATURES = ("", "+lse,+rcpc")
on_aarch64 = pytest.mark.skipif(
    aarch64.target() is None, reason="this llvmlite has no AArch64 target"
)


@on_aarch64
@pytest.mark.parametrize("generation", range(2))
@pytest.mark.parametrize("name", compile.PARTS)
def test_what_aarch64_gets(folder, name, generation):
    text, arguments = text_and_arguments(folder, name)
    stated = [
        instruction
        for block in kernels.in_one_block(text, arguments)
        for _, *operation in block
        for instruction in ON_AARCH64.get(tuple(operation), ([], []))[generation]
    ]
    found = aarch64.ordering_instructions(text, FEATURES[generation])
    assert collections.Counter(found) == collections.Counter(stated)
    assert stated


@on_aarch64
@pytest.mark.parametrize("function", [relaxed_arrival, relaxed_look])
def test_aarch64_shows_what_is_missing(function):
    assert aarch64.ordering_instructions(compile.compiled(function, ARGUMENTS), "") == []


@pytest.mark.parametrize("function", MISTAKES, ids=lambda function: function.__name__)
def test_mistake_in_compiled_code_is_found(function):
    text = compile.compiled(function, ARGUMENTS)
    found = kernels.complaints(kernels.accesses(text, ARGUMENTS))
    assert any(re.match(MISTAKES[function], complaint) for complaint in found), found
