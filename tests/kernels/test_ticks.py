"""The counter of ticks keeps time; every kind of processor has an instruction that reads it."""

import time

import pytest
from cobre_kernels.machine import libc, ticks
from cobre_kernels.machine.compiling import instructions
from llvmlite import binding, ir
from numba import config, njit

from tests.kernels.test_atomics import TRIPLE, has_aarch64

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="reads what is compiled")


@njit
def three():
    return ticks.ticks(), libc.monotonic_ns(), ticks.ticks()


def both():
    """Return one moment of the two clocks: of many readings, the one that took least time."""
    return min((three() for _ in range(50)), key=lambda read: read[2] - read[0])


def test_ticks_keep_time():
    first = both()
    time.sleep(0.02)
    again = both()
    time.sleep(0.04)
    last = both()
    speeds = [(later[0] - first[0]) / (later[1] - first[1]) for later in (again, last)]
    assert speeds[0] == pytest.approx(speeds[1], rel=0.01)


@pytest.mark.parametrize(
    ("triple", "instruction"),
    [
        ("x86_64-linux-gnu", "rdtsc"),
        pytest.param(
            TRIPLE, "CNTVCT_EL0",
            marks=pytest.mark.skipif(not has_aarch64(), reason="this llvmlite has no AArch64"),
        ),
    ],
)  # fmt: skip
def test_counter_of_each_machine(triple, instruction):
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        machine = binding.Target.from_triple(triple).create_target_machine()
    except RuntimeError:
        pytest.skip(f"this llvmlite has no {triple}")
    module = ir.Module()
    module.triple = triple
    function = ir.Function(module, ir.FunctionType(ir.IntType(64), []), "counter")
    builder = ir.IRBuilder(function.append_basic_block())
    _, write = instructions.WRITERS["ticks"](None)
    builder.ret(write(None, builder, None, ()))
    text = machine.emit_assembly(binding.parse_assembly(str(module)))
    assert instruction.lower() in text.lower(), text
