"""The order of a new worker: the state of the calling program, and the function to call.

A worker is a new interpreter, which must import the definitions of the program. The *spawn* method
of multiprocessing has functions for this task. They are called here, but no global start method is
set.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from multiprocessing import context, popen_spawn_posix, process, resource_tracker, spawn
from pathlib import Path
from typing import Any, NamedTuple

from cobre_comm.arguments.mistakes import LAUNCH, explained
from cobre_comm.launching.pickling import dumps, main_is_file


class Order(NamedTuple):
    """An order in the form that all workers get."""

    message: bytes  # each worker gets this message
    # Each worker inherits these descriptors: those of multiprocessing's objects among the
    # arguments, and that of multiprocessing's resource tracker.
    descriptors: tuple[int, ...]


def pack(fn: Callable[..., Any], args: tuple[Any, ...], *, wants_progress: bool) -> Order:
    """Pack a call; raise ``TypeError`` if it cannot be pickled."""
    spawning = _Spawning()
    tracker = getattr(resource_tracker._resource_tracker, "_fd", None)
    context.set_spawning_popen(spawning)  # type: ignore[arg-type]  # for this thread alone
    try:
        call = dumps((fn, args, wants_progress))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        said = "an argument of the function cannot be sent to workers, so let the function make it"
        raise explained(TypeError(f"{said}: {error}"), LAUNCH) from error
    finally:
        context.set_spawning_popen(None)
    descriptors = [*spawning.descriptors, *([] if tracker is None else [tracker])]
    return Order(pickle.dumps((_world(), tracker, call)), tuple(descriptors))


def unpack(message: bytes) -> tuple[Callable[..., Any], tuple[Any, ...], bool]:
    """Make this process like the program's; return function, arguments and ``wants_progress``."""
    world, tracker, call = pickle.loads(message)
    resource_tracker._resource_tracker._fd = tracker  # type: ignore[attr-defined]
    here: Any = process.current_process()
    here._inheriting = True  # set while the program's main module is imported
    try:
        spawn.prepare(world)
        fn, args, wants_progress = pickle.loads(call)
    finally:
        del here._inheriting
    return fn, args, wants_progress


class _Spawning:
    """Collects the descriptors that multiprocessing's objects need in a new process."""

    DupFd = popen_spawn_posix._DupFd  # from the Popen of multiprocessing

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def duplicate_for_child(self, descriptor: int) -> int:
        """Make the child inherit a descriptor."""
        self.descriptors.append(descriptor)
        return descriptor


def _world() -> dict[str, Any]:
    """Return the data for ``spawn.prepare``.

    multiprocessing's own function for this, ``get_preparation_data``, would fix a start method.
    """
    try:
        here = str(Path.cwd())
    except FileNotFoundError:  # the program's directory is gone, and the workers lack it too
        here = ""
    this: Any = process.current_process()
    world = {
        "authkey": bytes(this.authkey),
        "name": "worker",
        "sys_path": [entry or here for entry in sys.path],
        "sys_argv": sys.argv,
        "orig_dir": process.ORIGINAL_DIR,  # type: ignore[attr-defined]
    }
    if here:
        world["dir"] = here
    main: Any = sys.modules["__main__"]
    name = getattr(main.__spec__, "name", None)
    if name is not None:
        world["init_main_from_name"] = name
    elif main_is_file():
        world["init_main_from_path"] = str(Path(here) / main.__file__)
    return world
