"""With NUMBA_DISABLE_JIT=1 the kernels run as plain Python, and give the same bits."""

import json

from tests.kernels import everything_once, programs


def test_one_rank_gives_the_same_bits_with_compilation_and_without():
    interpreted = programs.start("everything_once", NUMBA_DISABLE_JIT="1")
    compiled = everything_once.results()
    found = json.loads(programs.output_of(interpreted))
    assert len(compiled) > 30
    assert {name: bits for name, bits in found.items() if bits != compiled[name]} == {}
    assert set(found) == set(compiled)
