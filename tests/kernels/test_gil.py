"""Compiled code knows whether its thread holds the GIL, also beside a second interpreter."""

import ctypes
import importlib
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine import libc
from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED
from cobre_kernels.machine.kernel import kernel

from tests.forked import fork, outcome

pytestmark = pytest.mark.skipif(NOTHING_IS_COMPILED, reason="the interpreter has the GIL")


@kernel(COMM)
def holds_gil_kernel(comm):
    return 1 if libc.gil_held() else 0


def told(*, interpreters=1):
    """Return what the kernel says with the GIL and without it, in this thread and in another."""
    for _ in range(1, interpreters):
        own = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
        importlib.import_module(own).create()
    without = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(holds_gil_kernel.address)
    with ThreadPoolExecutor(1) as other:
        return [
            call(0)
            for way in (holds_gil_kernel.call, without)
            for call in (way, lambda word, way=way: other.submit(way, word).result())
        ]


@pytest.mark.parametrize("interpreters", [1, 2])
def test_a_thread_knows_whether_it_holds_the_gil(interpreters):
    holds_gil_kernel.address  # noqa: B018  # loaded before the fork
    assert outcome(*fork(lambda: told(interpreters=interpreters)), 60) == [1, 1, 0, 0]
