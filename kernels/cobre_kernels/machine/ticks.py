"""The core's own counter of time: a few nanoseconds to read, and the same for all processes.

x86-64: the time stamp counter. aarch64: the virtual counter, by name, because there LLVM's own
intrinsic reads one that traps. How long a tick is follows from two readings of ticks and of the
monotonic clock; the journal keeps the first (``collective/seeing/journal.py``).

Sources: "LLVM Language Reference" on llvm.readcyclecounter and llvm.read_volatile_register; Intel's
manual, volume 3, "Time-Stamp Counter" (invariant TSC); Arm's manual on CNTVCT_EL0.
"""

import time

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

_I64 = ir.IntType(64)
ARM_COUNTER = "cntvct_el0"

if not config.DISABLE_JIT:

    def read_counter(builder):
        """Emit the reading of the counter."""
        module = builder.module
        if (module.triple or "").startswith(("aarch64", "arm64")):
            function_type = ir.FunctionType(_I64, [ir.MetaDataType()])
            name, arguments = "llvm.read_volatile_register", [module.add_metadata([ARM_COUNTER])]
        else:
            function_type = ir.FunctionType(_I64, [])
            name, arguments = "llvm.readcyclecounter", []
        overloaded = [_I64] if arguments else ()
        return builder.call(module.declare_intrinsic(name, overloaded, function_type), arguments)

    @intrinsic
    def ticks(typingctx):
        """Ticks of the counter; they only grow."""

        def codegen(context, builder, signature, args):
            return read_counter(builder)

        return types.int64(), codegen

else:
    ticks = time.monotonic_ns
