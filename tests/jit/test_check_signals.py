"""``check_signals`` in code that numba compiles and caches; the table of cases has the rest."""

import pytest
from numba import TypingError, config, njit, prange

from cobre_comm import check_signals
from tests.command import python

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="Python itself runs handlers")

# `check_signals` is used in the compiled function alone: numba loads it when it types that
# function.
PROGRAM = """
import sys
import cobre_comm
from numba import njit

if "another" in sys.argv:
    import cobre_comm.jit.types
    cobre_comm.jit.types.version_tag = lambda: "another"

@njit(cache=True, nogil=True)
def look():
    cobre_comm.check_signals()

@njit(cache=True, nogil=True)
def loop(rounds):
    for _ in range(rounds):
        look()
    return rounds

import signal
assert loop(5) == 5
signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
try:
    loop(10**12)
except KeyboardInterrupt:
    print(sum(loop.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_another_process_of_this_version_finds_it_in_the_cache(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    hits = []
    for version in ("this", "this", "another", "another"):
        hits.append(python(program, version).stdout.strip())
    assert hits == ["0", "1", "0", "1"]


@njit(parallel=True)
def _in_parallel(count):
    for _ in prange(count):
        check_signals()


def test_it_is_refused_in_a_parallel_loop():
    with pytest.raises(TypingError, match="check_signals cannot be called inside prange"):
        _in_parallel(4)
