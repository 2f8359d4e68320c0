"""A kernel that cannot be kept is compiled all the same, by each process for itself."""

import os

import pytest

from tests.command import python

HEAD = (
    "from cobre_kernels.collective import guard\n"
    "from cobre_kernels.collective.comm import CLOSED, COMM\n"
    "from cobre_kernels.machine.compiling.disk_cache import cache_of\n"
    "words = COMM.array(1)\n"
    "folder = cache_of(guard.shut_kernel.function).cache_path\n"
)
TAIL = "assert guard.shut_kernel.call(COMM.of(words).address) >= 0\n"
FULL = (
    "import resource, signal\n"
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
)
REMOVED = "import shutil\nshutil.rmtree(folder)\n"
UNREADABLE = (
    "import pathlib\n"
    "index = cache_of(guard.shut_kernel.function)._cache_file._index_path\n"
    "pathlib.Path(index).mkdir()\n"
)


def compile_in(folder, program, **variables):
    """Compile a kernel in a process with a cache of its own; a warning is an error."""
    python("-W", "error", "-c", program, env={**os.environ, "XDG_CACHE_HOME": folder, **variables})


@pytest.mark.parametrize("way", [FULL, REMOVED, UNREADABLE], ids=["full", "removed", "unreadable"])
def test_a_kernel_is_compiled_where_it_cannot_be_kept(way, tmp_path):
    compile_in(str(tmp_path), HEAD + way + TAIL)


@pytest.mark.parametrize("level", ["0", "1"])
def test_a_level_of_optimisation(level, tmp_path):
    """Code of level 0 has addresses of its process, so it is not kept; nothing warns of that."""
    compile_in(str(tmp_path), HEAD + TAIL, NUMBA_OPT=level)
    kept = list(tmp_path.rglob("*.nbc"))
    assert bool(kept) == (level != "0"), kept
