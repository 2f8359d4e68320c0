"""Cached functions that call ours are compiled in several processes, and loaded in one.

    python -m tests.jit.pairs_from_caches FOLDER

Each function is compiled by ranks that are forks of this process. numba numbers the functions of a
process, and so begins with the same number in all forks. Then other forks load all functions, in
both orders, so that each of any two functions is once loaded first. A loaded function has to return
what Python returns for the same source.
"""

import importlib
import itertools
import json
import pathlib
import sys

import numpy as np

from cobre_comm import random
from cobre_comm.contract.routine import routine
from tests.forked import ranks

HEAD = """
from numba import njit
from cobre_comm import ReduceOp, random
from tests.jit.pairs_from_caches import CUBE, SQUARE

@njit(cache=True)
def caller(comm, region, work, key, x, words, out, room, tables):
    {}
"""
OPERATIONS = [
    *(f"comm.allreduce(x, out, ReduceOp.{op}); return out" for op in ("SUM", "MIN", "MAX", "PROD")),
    *(f"comm.allreduce(words, words, ReduceOp.{op}); return words" for op in ("BAND", "BOR")),
    "comm.allgather(x, room); return room",
    "comm.allgatherv(x, room, tables[0], tables[1]); return room",
    "comm.gatherv(x, room, tables[0], tables[1], 0); return room",
    "comm.broadcast(x, 1); return x",
    "comm.barrier(); return 7",
    "region.fence(); return 8",
]
VALUES = [
    *("comm.rank", "comm.size", "comm.is_leader", "comm.stop_requested()", "comm.exact_sum(x)"),
    *(f"comm.{name}({value})" for name in ("sum", "min", "max") for value in ("x[0]", "words[0]")),
    *("comm.share(7)", "comm.shares(7)", "comm.shares(7, 3)"),
    *("region.count", "region.nbytes", "region.shape", "region.as_slice()", "region.part(1, 3)"),
    *("work.count", "work.start", "work.stop", "work.claim() in (0, 1, 2, 3)"),
    *(f"random.{name}(key, {i})" for name in ("uniform", "normal") for i in ("3", "words")),
    *(f"random.integers(key, {i}, 99)" for i in ("3", "words")),
    *("random.key(1)", "random.key(1, 2)", "SQUARE(x[0])", "CUBE(x[0])"),
]
SOURCES = [*OPERATIONS, *(f"return {value}" for value in VALUES)]


def made(power):
    @routine
    def closure(x):
        return x**power

    return closure


SQUARE, CUBE = made(2), made(3)


def judge(comm, modules):
    """Call the functions of modules; return what is wrong, and which modules were compiled."""
    wrong, compiled = [], []
    with comm.create_shared_region(4) as region, comm.create_work(4) as work:
        for name in modules:
            caller = importlib.import_module(name).caller
            found, right = (
                call(comm, region, work, *given(comm)) for call in (caller, plain(caller))
            )
            compiled += [name] if caller.stats.cache_misses else []
            if not same(found, right):
                wrong.append(f"{name}: {found!r} instead of {right!r}")
    return wrong, compiled


def plain(caller):
    """Return a function of Python with the same source as a compiled function."""
    names = dict(caller.py_func.__globals__, SQUARE=SQUARE.py_func, CUBE=CUBE.py_func)
    return type(caller.py_func)(caller.py_func.__code__, names)


def given(comm):
    """Return arguments whose results differ by rank and by function."""
    x = np.array([2.5, -1.0, 4.0]) + comm.rank
    words = np.array([6, 3, 12]) + comm.rank
    tables = np.full(comm.size, 3), 3 * np.arange(comm.size)
    return random.key(1, 2), x, words, np.zeros(3), np.zeros(3 * comm.size), tables


def same(found, right):
    """Tell whether numbers, arrays or tuples of these are equal, and of the same kind."""
    if isinstance(right, tuple):
        return len(found) == len(right) and all(map(same, found, right))
    kinds = {np.asarray(each).dtype.kind for each in (found, right)}
    return len(kinds) == 1 and np.array_equal(found, right)


def told(outcomes):
    """Return what is wrong on any rank, and which modules any rank has compiled."""
    wrong, compiled = zip(*(each.value for each in outcomes), strict=True)
    return list(itertools.chain(*wrong)), set(itertools.chain(*compiled))


def main(folder):
    sys.path.insert(0, folder)
    names = [f"of_{number}" for number in range(len(SOURCES))]
    for name, source in zip(names, SOURCES, strict=True):
        pathlib.Path(folder, f"{name}.py").write_text(HEAD.format(source.replace("; ", "\n    ")))
    alone = [told(ranks("shm", 2, judge, [name])) for name in names]
    together = [told(ranks("shm", 2, judge, order)) for order in (names, names[::-1])]
    wrong = list(itertools.chain.from_iterable(text for text, _ in [*alone, *together]))
    compiled_anew = set().union(*(compiled for _, compiled in together))
    kept = len(names) - len(compiled_anew)
    found = {
        "functions": len(names), "pairs from caches": kept * (kept - 1), "wrong": wrong,
        "compiled anew": sorted(compiled_anew), "processes": 2 * len(alone) + 2 * len(together),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
