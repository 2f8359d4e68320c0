"""Each operation on a shared word compiles to the stated instruction, here and on 64-bit ARM.

Kernels touch shared words through these operations alone (``test_source.py``), and LLVM keeps the
promises of an atomic operation wherever it is inlined. Orderings have LLVM's names: 'monotonic' is
C's relaxed.
"""

import re
from typing import NamedTuple

import pytest
from cobre_kernels.machine import atomics, libc
from cobre_kernels.machine.compiled import Instruction
from llvmlite import binding
from numba import config, njit, types

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="reads what is compiled")
GENERATIONS = ("", "+lse,+rcpc")  # features of the first aarch64, and of a newer one
TRIPLE = "aarch64-linux-gnu"
ORDERING = r"ld(?:ar|apr|axr|xr)|st(?:lr|lxr|xr)|(?:ldadd|swp|cas)(?:a|l|al)?|dmb"


class Operation(NamedTuple):
    """An operation: its count of arguments, its LLVM instruction, and its aarch64 instructions."""

    arguments: int
    instruction: str
    on_aarch64: tuple[list[str], list[str]] = ([], [])


EXCLUSIVE = ["ldaxr", "stlxr"]
OPERATIONS = {
    "peek": Operation(1, r"load i64, .*, align 8"),
    "load_relaxed": Operation(1, r"load atomic i64, .* monotonic, align 8"),
    "load_acquire": Operation(1, r"load atomic i64, .* acquire, align 8", (["ldar"], ["ldapr"])),
    "load_seq_cst": Operation(1, r"load atomic i64, .* seq_cst, align 8", (["ldar"], ["ldar"])),
    "poke": Operation(2, r"store i64 .*, align 8"),
    "store_relaxed": Operation(2, r"store atomic i64 .* monotonic, align 8"),
    "store_release": Operation(2, r"store atomic i64 .* release, align 8", (["stlr"], ["stlr"])),
    "store_seq_cst": Operation(2, r"store atomic i64 .* seq_cst, align 8", (["stlr"], ["stlr"])),
    "fetch_add": Operation(
        2, r"atomicrmw add .* seq_cst, align 8", (EXCLUSIVE, ["ldaddal"])
    ),
    "compare_exchange": Operation(
        3, r"cmpxchg .* acq_rel acquire, align 8", (EXCLUSIVE, ["casal"])
    ),
    "fence_seq_cst": Operation(0, r"fence seq_cst", (["dmb"], ["dmb"])),
}  # fmt: skip
every_operation = pytest.mark.parametrize("name", OPERATIONS)


def has_aarch64():
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        return bool(binding.Target.from_triple(TRIPLE))
    except RuntimeError:
        return False


def body_of(function, arguments):
    """Return a compiled function's name, its optimised IR, and the IR with the wrappers."""
    compiled = njit(error_model="numpy")(function)
    signature = (types.int64,) * arguments
    compiled.compile(signature)
    name = compiled.overloads[signature].fndesc.mangled_name
    text = compiled.inspect_llvm(signature)
    found = re.search(rf'^define [^\n]*@"?{re.escape(name)}"?\(.*?^}}', text, flags=re.S | re.M)
    return name, found.group(0), text


def alone(name):
    """Return a function of integers that performs one operation."""
    words = ", ".join("abc"[: OPERATIONS[name].arguments])
    return eval(f"lambda {words}: {name}({words})", {name: getattr(atomics, name)})


def test_every_operation_is_here():
    instructions = {name for name, value in vars(atomics).items() if isinstance(value, Instruction)}
    copies = {"copy_bytes", "copy_blocks", "copy_thirds", "stream_blocks"}
    others = {"swap_bytes", "cpu_pause"} | copies
    assert instructions - others == set(OPERATIONS)


@every_operation
def test_instruction_of_llvm(name):
    _, body, _ = body_of(alone(name), OPERATIONS[name].arguments)
    touching = r"^ +(?:%\S+ = )?((?:tail )?(?:load|store|atomicrmw|cmpxchg|fence)\b.*)$"
    # The first instruction is the operation; the last one stores the result for the caller.
    first, *_ = re.findall(touching, body, flags=re.M)
    assert re.fullmatch(OPERATIONS[name].instruction, first), body


@pytest.mark.skipif(not has_aarch64(), reason="this llvmlite has no AArch64 target")
@pytest.mark.parametrize("generation", range(2))
@every_operation
def test_instructions_of_aarch64(name, generation):
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(
        opt=3, features=GENERATIONS[generation]
    )
    function, _, text = body_of(alone(name), OPERATIONS[name].arguments)
    text = re.sub(r'^target triple = ".*"$', f'target triple = "{TRIPLE}"', text, flags=re.M)
    module = binding.parse_assembly(re.sub(r"^target datalayout = .*$", "", text, flags=re.M))
    module.data_layout = str(machine.target_data)
    body = machine.emit_assembly(module).split(f"\n{function}:")[1].split(".Lfunc_end")[0]
    expected = OPERATIONS[name].on_aarch64[generation]
    if binding.llvm_version_info < (16,):
        expected = [word.replace("ldapr", "ldar") for word in expected]  # ldar orders more
    assert re.findall(rf"^\t({ORDERING})\b", body, flags=re.M) == expected


def test_waits_take_no_stack_in_their_loops():
    """A wait may read the clock at its polls for hours: the stack must not grow meanwhile."""
    clock = libc.monotonic_ns

    def wait(until):
        while clock() < until:
            pass

    _, body, _ = body_of(wait, 1)
    first, *others = re.split(r"^\S+:.*$", body, flags=re.M)[1:]
    assert "alloca" in first
    assert not any("alloca" in block for block in others)
