"""The levels of processors for which machine code is made, and those that this processor has.

A level is a set of instructions that many processors have: x86-64 and its levels 2 to 4, as the
x86-64 psABI names them. Code of a level runs on every processor that has its features.
"""

import functools
import pathlib
import platform
import sys

# By instruction set: the levels, the best first, with the flags that a processor of the level must
# have, as Linux names them.
_V3 = ("avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")
_V4 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
LEVELS = {
    "x86_64": {"x86-64-v4": _V3 + _V4, "x86-64-v3": _V3, "x86-64": ()},
    "aarch64": {"generic": ()},
}
LIBRARY, OBJECTS = ".so", ".kernels"  # suffixes of files: a shared library, object files
OTHER_NAMES = {"AMD64": "x86_64", "arm64": "aarch64"}


def machine():
    """Return the name of this machine's instruction set."""
    return OTHER_NAMES.get(platform.machine(), platform.machine())


def system():
    """Return instruction set and operating system; machine code for another system is not run."""
    return f"{machine()}-{sys.platform}"


def levels():
    """Return the levels that this processor has, the best one first.

    Under an emulator or Valgrind a process has fewer features than Linux knows of. So a shared
    library asks the processor itself, when it is loaded. A process that loads object files has
    loaded LLVM, which asks the processor too; then this function uses LLVM's answer.
    """
    flags = _flags_of_llvm() if "llvmlite.binding" in sys.modules else _flags()
    known = LEVELS.get(machine(), {"generic": ()})
    return tuple(name for name, needed in known.items() if flags.issuperset(needed))


def _flags():
    """Return the flags of the first processor, as Linux names them."""
    try:
        with pathlib.Path("/proc/cpuinfo").open() as file:
            found = (set(line.split()) for line in file if line.startswith("flags"))
            return next(found, set())
    except OSError:
        return _flags_of_llvm()


@functools.cache
def _flags_of_llvm():
    """Return the flags that the processor tells this process, by LLVM, which takes long to load."""
    from llvmlite import binding

    names = {"bmi": "bmi1", "lzcnt": "abm"}
    return {names.get(name, name) for name, has in binding.get_host_cpu_features().items() if has}


def level_of(path):
    """Return the level in the name of a file of machine code."""
    return path.name.removesuffix(f".{system()}{path.suffix}")


def file_name(level, kind):
    """Return the name of the file with the code for a level: a shared library, or objects."""
    return f"{level}.{system()}{kind}"
