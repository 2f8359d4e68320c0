"""The shared library of the kernels: what it has in addition to the kernels, and its linker.

A process maps the library from its file, without llvmlite. No writable memory of the library
becomes executable, and debuggers find the library's functions by their names.

The library itself asks the processor whether it has the instructions of the library's level. Under
an emulator, under Valgrind, or if a hypervisor hides features, the processor offers a process fewer
instructions than Linux lists.

Sources: Intel, "Architectures Software Developer's Manual", volume 2A, CPUID and XGETBV; AMD,
"Architecture Programmer's Manual", volume 3, appendix E; the x86-64 psABI, "Micro-architecture
levels"; elf(5), ld(1).
"""

import importlib.util
import pathlib
import shutil
import subprocess
import sys

from cobre_kernels.machine.code import CURRENT_STATE, CURRENT_STATE_NAMES, RUNS_HERE, SOURCES
from cobre_kernels.machine.target import LEVELS

# By leaf of CPUID and register: the bit of each flag. A register is given by its place in the
# result of CPUID.
_EBX, _ECX = 1, 2
_BITS = {
    (1, _ECX): {"fma": 12, "movbe": 22, "f16c": 29},
    (7, _EBX): {
        "bmi1": 3, "avx2": 5, "bmi2": 8, "avx512f": 16, "avx512dq": 17, "avx512cd": 28,
        "avx512bw": 30, "avx512vl": 31,
    },
    (0x80000001, _ECX): {"abm": 5},
}  # fmt: skip
_HAS_XGETBV = 1 << 27 | 1 << 28  # of leaf 1, ECX: OSXSAVE, AVX; then there is a leaf 7
_YMM, _ZMM = 0b110, 0b11100110  # bits of XCR0: registers that the system saves for each thread


def texts_of(level, sources):
    """Return LLVM text for what a library of this level has in addition to the kernels."""
    named = f"@{SOURCES}{sources} = constant i8 1\n"
    return [named, _runs_here(level), _current_state()]


def _runs_here(level):
    """Return a function that runs on every processor, and tells if code of this level does too."""
    needed = next((flags[level] for flags in LEVELS.values() if level in flags), ())
    if not needed:
        return f"define i32 @{RUNS_HERE}() {{\n  ret i32 1\n}}\n"
    masks = {
        place: sum(1 << bit for flag, bit in bits.items() if flag in needed)
        for place, bits in _BITS.items()
    }
    masks[1, _ECX] |= _HAS_XGETBV
    checks = {name: _has(name, *each) for name, each in zip("acd", masks.items(), strict=True)}
    return f"""
define i32 @{RUNS_HERE}() #0 {{
{checks["a"]}
  br i1 %a, label %more, label %end
more:
  %x = call {{ i32, i32 }} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}}"(i32 0)
  %b.r = extractvalue {{ i32, i32 }} %x, 0
{_compared("b", _ZMM if "avx512f" in needed else _YMM)}
{checks["c"]}
{checks["d"]}
  %bc = and i1 %b, %c
  %all = and i1 %bc, %d
  br label %end
end:
  %has = phi i1 [ false, %0 ], [ %all, %more ]
  %number = zext i1 %has to i32
  ret i32 %number
}}
attributes #0 = {{ "target-cpu"="x86-64" }}
"""


def _has(name, place, mask):
    """Return LLVM text that tests whether a register of a CPUID leaf has all bits of a mask."""
    (leaf, register), four = place, "{ i32, i32, i32, i32 }"
    asked = "={ax},={bx},={cx},={dx},{ax},{cx}"
    return (
        f'  %{name}.l = call {four} asm sideeffect "cpuid", "{asked}"(i32 {leaf}, i32 0)\n'
        f"  %{name}.r = extractvalue {four} %{name}.l, {register}\n{_compared(name, mask)}"
    )


def _compared(name, mask):
    return f"  %{name}.m = and i32 %{name}.r, {mask}\n  %{name} = icmp eq i32 %{name}.m, {mask}"


def _current_state():
    """Return a function that calls CPython's function by its name of 3.13, or else of 3.12."""
    from llvmlite import ir

    module, word = ir.Module(), ir.IntType(64)
    kind = ir.FunctionType(word, [])
    new, old = (ir.Function(module, kind, name) for name in CURRENT_STATE_NAMES)
    new.linkage = old.linkage = "extern_weak"
    builder = ir.IRBuilder(ir.Function(module, kind, CURRENT_STATE).append_basic_block())
    is_there = builder.icmp_unsigned("!=", builder.ptrtoint(new, word), ir.Constant(word, 0))
    builder.ret(builder.call(builder.select(is_there, new, old), []))
    return str(module)


def linker():
    """Return the command of the linker, or None.

    The build of a wheel requires the package ``ziglang``. Its lld is the same on every machine, so
    the same sources give the same bytes.
    """
    if sys.platform != "linux":
        return None
    zig = importlib.util.find_spec("ziglang")
    if zig is not None and zig.origin:
        return [str(pathlib.Path(zig.origin).with_name("zig")), "ld.lld"]
    found = shutil.which("ld.lld") or shutil.which("ld")
    return found and [found]


def link(command, objects, library):
    """Make a shared library of object files.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If the linker does not run, or refuses the object files.
    """
    options = "-shared", "-Bsymbolic", "--build-id=none", "--hash-style=gnu", "--eh-frame-hdr"
    flags = [word for flag in ("now", "relro", "noexecstack") for word in ("-z", flag)]
    words = [*command, *options, *flags, "-o", str(library), *map(str, objects)]
    subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL)
