"""Compile all that ``@njit`` code may call, and print each name that two functions share."""

import collections
import contextlib
import itertools
import json
import warnings

import numpy as np
from cobre_kernels.machine.compiling.own_names import _told
from numba import njit
from numba.core import event  # noqa: TID251  # its public listeners have no other name

from cobre_comm import BackendKind, create_communicator, random
from cobre_comm.contract.routine import routine
from cobre_comm.testing.cases import calls
from cobre_comm.testing.cases.errors import wrong_calls

OF_A_REGION = ("count", "nbytes", "shape", "as_slice()", "block(0, 1)", "block(0.0, 1)", "fence()")
OF_A_WORK = ("count", "first", "last", "claim()")
OF_A_COMM = ("rank", "size", "is_leader", "stop_requested()", "enter_phase(0)", "enter_phase(0.5)")
DRAWS = ("uniform(key, {})", "normal(key, {})", "integers(key, {}, 9)", "integers(key, {}, 0.5)")


class Names(event.Listener):
    """Notes, for each compiled function, what it does, under its name and its argument types."""

    def __init__(self):
        self.meanings = collections.defaultdict(set)

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        name = function.__module__, function.__qualname__, str(event.data["args"])
        # what the function does is described without its name
        function.__qualname__, kept = "", function.__qualname__
        if name[0].startswith("cobre_") or name[0] == __name__:
            self.meanings[name].add(_told(function))
        function.__qualname__ = kept

    def on_end(self, event):
        pass


def made(power):
    @routine
    def closure(x):
        return x**power

    return closure


def call(text, **names):
    """Compile a call, and make it; errors are ignored, because other tests try them."""
    function = eval(f"lambda {', '.join(names)}: {text}", {"random": random, "np": np})
    with contextlib.suppress(Exception):
        njit(function)(*names.values())


def main():
    names = Names()
    event.register("numba:compile", names)
    key = random.key(1, 2)
    for text, index in itertools.product(DRAWS, (3, np.arange(3), np.ones(2))):
        call(f"random.{text.format('i')}", key=key, i=index)
    call("random.key(1)")
    call("random.key(1, 2, 3)")
    call("random.key(1, 0.5)")
    square, cube = made(2), made(3)
    njit(lambda x: square(x) + cube(x))(2.0)
    with create_communicator(BackendKind.LOCAL) as comm:
        for text in OF_A_COMM:
            call(f"comm.{text}", comm=comm)
        with comm.create_shared_region(4) as region, comm.create_work(4) as work:
            for text in OF_A_REGION:
                call(f"region.{text}", region=region)
            for text in OF_A_WORK:
                call(f"work.{text}", work=work)
        for operation, wrong in wrong_calls.BY_OPERATION.items():
            right = calls.arguments(comm, operation)
            for arguments in [right, *(given for _, given, _ in wrong(comm.rank, comm.size))]:
                with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
                    njit(calls._BODIES[operation])(comm, *arguments)
    shared = {str(name): len(each) for name, each in names.meanings.items() if len(each) > 1}
    print(json.dumps({"names": len(names.meanings), "shared": shared}))


if __name__ == "__main__":
    main()
