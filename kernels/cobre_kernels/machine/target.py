"""The levels of processors for which machine code is made, and the levels of this processor.

A level is a set of instructions that many processors have: x86-64 and its levels 2 to 4, with their
names in the x86-64 psABI. Code of a level runs on every processor that has the level's features.
"""

import functools
import pathlib
import platform
import sys

# By instruction set: the levels, the best first, each with the flags that a processor of the level
# must have, under the names that Linux uses.
_V3 = ("avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")
_V4 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
LEVELS = {
    "x86_64": {"x86-64-v4": _V3 + _V4, "x86-64-v3": _V3, "x86-64": ()},
    "aarch64": {"generic": ()},
}
LIBRARY, OBJECTS = ".so", ".kernels"  # suffixes of files: a shared library, and object files
OTHER_NAMES = {"AMD64": "x86_64", "arm64": "aarch64"}


def machine():
    """Return the name of this machine's instruction set."""
    return OTHER_NAMES.get(platform.machine(), platform.machine())


def system():
    """Return instruction set and operating system; code for another system is never run."""
    return f"{machine()}-{sys.platform}"


def levels():
    """Return the levels that this processor has, the best level first.

    Under an emulator or Valgrind a process has fewer features than Linux lists. So a shared library
    asks the processor itself, when it is loaded. A process that loads object files has loaded LLVM,
    which asks the processor too; in this case this function uses LLVM's answer.
    """
    flags = _flags_of_llvm() if "llvmlite.binding" in sys.modules else _flags()
    known = LEVELS.get(machine(), {"generic": ()})
    return tuple(name for name, needed in known.items() if flags.issuperset(needed))


def _flags():
    """Return the flags of the first processor, under the names that Linux uses."""
    try:
        with pathlib.Path("/proc/cpuinfo").open() as file:
            found = (set(line.split()) for line in file if line.startswith("flags"))
            return next(found, set())
    except OSError:
        return _flags_of_llvm()


@functools.cache
def _flags_of_llvm():
    """Return the flags of the processor as LLVM finds them; LLVM takes long to load."""
    from llvmlite import binding

    names = {"bmi": "bmi1", "lzcnt": "abm"}
    return {names.get(name, name) for name, has in binding.get_host_cpu_features().items() if has}


def level_of(path):
    """Return the level in the name of a file of machine code."""
    return path.name.removesuffix(f".{system()}{path.suffix}")


def file_name(level, kind):
    """Return the name of the file with the code for a level: a shared library, or objects."""
    return f"{level}.{system()}{kind}"
