"""Every way in which compiled code gets an object of ours, and stops holding it.

A row of ``WAYS`` says how the object is held, and how compiled code reads the object from there. A
row of ``KINDS`` says what the object is, and what is called. Rank 0 calls in a thread. If ranks
meet in the call, rank 0 looks while the call waits for rank 1: the object must be alive then. The
object must be gone when the call has ended. Rank 1 calls from Python, because compiled code on both
ranks would prove nothing more.
"""

import collections
import functools
import gc
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import njit, objmode, types
from numba.experimental import jitclass, structref

from cobre_comm.testing.cases.raised import met, raises

Named = collections.namedtuple("Named", "held number")
REFUSAL = "a shared region cannot be a global or closure variable of @njit code; pass it"
slot: list[Any] = []  # an objmode block takes its object from this list
constant: Any = None


class Kind(NamedTuple):
    """A kind of object that compiled code holds."""

    make: Callable  # makes an object; all ranks call it
    meet: str  # the method that compiled code calls; all ranks meet in it if ``waits``
    fail: str  # a call that raises
    waits: bool = True  # whether ranks meet in ``meet``
    spoil: Callable = lambda own: None  # changes the object so that ``fail`` raises


KINDS = {
    "communicator": Kind(
        lambda comm: comm.split(0), "barrier", ".allgather(entered, entered)"
    ),
    "region": Kind(
        lambda comm: comm.split(0).create_shared_region(3), "fence", ".part(0, 99)"
    ),
    "work": Kind(
        lambda comm: comm.split(0).create_work(3), "claim", ".claim()",
        waits=False, spoil=lambda own: own.close(),
    ),
}  # fmt: skip


class Way(NamedTuple):
    """A way in which compiled code gets an object."""

    hold: Callable  # is given the object, and returns what is passed to compiled code as `holder`
    get: str  # reads the object from `holder`
    pop: str = ""  # takes the object out of the holder
    replace: str = ""  # puts `other` in the place of the object
    # does what `pop` or `replace` does, but from Python, in another thread
    drop: Callable | None = None
    # Is given the type of the object, and returns the names that `get` needs beside `holder`.
    names: Callable = lambda _kind: {}
    lives_on: bool = False  # whether numba never frees the object
    refuses: tuple[str, ...] = ()  # kinds that this way cannot hold: numba answers with `REFUSAL`


def in_list(own):
    return numba.typed.List([own])


def in_dict(own):
    table = numba.typed.Dict.empty(types.int64, numba.typeof(own))
    table[7] = own
    return table


@functools.cache
def model_of(kind):
    @jitclass([("held", kind)])
    class Model:
        def __init__(self, held):
            self.held = held

    return Model


def in_jitclass(own):
    return model_of(numba.typeof(own))(own)


@structref.register
class StructType(types.StructRef):
    """A structref with a communicator or a region in it."""


class Struct(structref.StructRefProxy):
    def __new__(cls, held):
        return structref.StructRefProxy.__new__(cls, held)


structref.define_proxy(Struct, StructType, ["held"])


@njit
def replace_field(holder, other):
    holder.held = other


def in_slot(own):
    slot[:] = [own]
    return 0


def from_objmode(kind):
    @njit
    def get(holder):
        with objmode(held=kind):
            held = slot.pop()
        return held  # noqa: RET504  # what an objmode block gives

    return {"get": get}


def returned(_kind):
    @njit(nogil=True)
    def get(holder):
        return holder.pop()

    return {"get": get}


def by_first_class_function(kind):
    """The length of the list chooses the function at run time, not when the code is compiled."""
    signature = kind(types.ListType(kind))
    functions = tuple(njit(signature)(body) for body in (lambda h: h.pop(), lambda h: h.pop(0)))

    @njit(nogil=True)
    def get(holder):
        return functions[len(holder) - 1](holder)

    return {"get": get}


@njit
def twice(held):
    for _ in range(2):
        yield held


def exhausted(_kind):
    @njit(nogil=True)
    def get(holder):
        for item in twice(holder):
            last = item
        return last

    return {"get": get}


def abandoned(_kind):
    @njit(nogil=True)
    def get(holder):
        for item in twice(holder):
            return item
        raise IndexError

    return {"get": get}


def as_constant(own):
    global constant
    constant = own
    return 0


def from_global(_kind):
    return {"constant": constant}


def from_closure(_kind):
    own = constant
    return {"get": njit(nogil=True)(lambda holder: own)}


WAYS = {
    "argument": Way(lambda own: own, "holder"),
    "tuple": Way(lambda own: (own,), "holder[0]"),
    "NamedTuple": Way(lambda own: Named(own, 1), "holder.held"),
    "Optional": Way(lambda own: (own, True), "(holder[0] if holder[1] else None)"),
    "list": Way(
        in_list, "holder[0]", "holder.pop()", "holder[0] = other",
        lambda holder, other: holder.clear(),
    ),
    "dict": Way(
        in_dict, "holder[7]", "holder.pop(7)", "holder[7] = other",
        lambda holder, other: holder.pop(7),
    ),
    "jitclass": Way(
        in_jitclass, "holder.held", "", "holder.held = other",
        lambda holder, other: setattr(holder, "held", other),
    ),
    "structref": Way(Struct, "holder.held", "", "holder.held = other", replace_field),
    "objmode": Way(in_slot, "get(holder)", names=from_objmode),
    "return value": Way(in_list, "get(holder)", names=returned),
    "first-class function": Way(in_list, "get(holder)", names=by_first_class_function),
    # numba never frees an object that a generator holds, nor an object that is a constant.
    "generator": Way(lambda own: own, "get(holder)", names=exhausted, lives_on=True),
    "abandoned generator": Way(lambda own: own, "get(holder)", names=abandoned, lives_on=True),
    "global": Way(as_constant, "constant", names=from_global, lives_on=True, refuses=("region",)),
    "closure": Way(
        as_constant, "get(holder)", names=from_closure, lives_on=True, refuses=("region",)
    ),
}  # fmt: skip
# What happens to the object while compiled code holds it, and the code that is compiled for this.
EVENTS = {
    "last use": "entered[0] = 1; {get}.{meet}()",
    "reassignment": "held = {get}; taken = held; held = other; entered[0] = 1; taken.{meet}()",
    "pop": "entered[0] = 1; {pop}.{meet}()",
    "pop into a variable": "held = {pop}; entered[0] = 1; held.{meet}()",
    "replaced": "held = {get}; {replace}; entered[0] = 1; held.{meet}()",
    "other thread": "entered[0] = 1; {get}.{meet}()",
    "exception": "{get}{fail}",
}
ERRORS = ("InvalidBufferSize", "InvalidCommunicator", "ValueError")


def can_happen(way, kind, event):
    needs = [part for part in ("pop", "replace") if f"{{{part}}}" in EVENTS[event]]
    if event == "other thread" and (way.drop is None or not kind.waits):
        return False
    return all(getattr(way, part) for part in needs)


def compiled(way, kind, event, numba_type):
    """Return the compiled function ``call(holder, other, entered)``."""
    code = EVENTS[event].format(**{**way._asdict(), **kind._asdict()})
    names = way.names(numba_type)
    return compiled_code(code, **names) if names else one_of_each(code)


def compiled_code(code, **names):
    exec(f"def call(holder, other, entered): {code}", names)  # a user would have written this code
    return njit(nogil=True)(names["call"])


one_of_each = functools.cache(compiled_code)


def walk(comm, way_name, kind_name, event):
    """Return the problems that rank 0 finds with one event."""
    way, kind = WAYS[way_name], KINDS[kind_name]
    is_refused = kind_name in way.refuses
    waits = kind.waits and event != "exception" and not is_refused
    own, other = kind.make(comm), kind.make(comm)
    if comm.rank == 1:
        if waits:
            comm.barrier()  # returns when rank 0 has checked whether the object is alive
            getattr(own, kind.meet)()
        return ""
    seen, numba_type, arguments = weakref.ref(own), numba.typeof(own), [way.hold(own)]
    if event == "exception":
        kind.spoil(own)
    del own
    call = compiled(way, kind, event, numba_type)
    entered, errors, wrong = np.zeros(1, np.int64), [], []

    def run():
        errors.append(met(call, arguments.pop(), other, entered))

    if is_refused:
        run()
        return "" if REFUSAL in str(errors[0]) else str(errors[0])
    if waits:
        drop = partial(way.drop, arguments[0], other) if event == "other thread" else None
        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive() and not entered[0]:
            time.sleep(0.001)
        time.sleep(0.02)  # after this time the call most likely waits
        if drop is not None:
            drop()
        churn()
        if seen() is None:
            wrong.append("not held while the call waits")
        comm.barrier()
        thread.join()
        del drop
    else:
        run()
    raised = type(errors.pop()).__name__
    if raised not in (ERRORS if event == "exception" else ("NoneType",)):
        wrong.append(raised)
    churn()
    if (seen() is None) == way.lives_on:
        wrong.append("given back" if way.lives_on else "held to the end")
    return ", ".join(wrong)


def walk_all(comm, way, kind):
    """Return the problems that a way has with a kind, by event."""
    events = [event for event in EVENTS if can_happen(WAYS[way], KINDS[kind], event)]
    gc.collect()
    gc.freeze()  # `churn` then examines new objects only, and not all of numba
    try:
        found = {event: walk(comm, way, kind, event) for event in events}
    finally:
        gc.unfreeze()
    return {event: wrong for event, wrong in found.items() if wrong}


def churn():
    """Collect objects that nothing holds, and overwrite their memory."""
    gc.collect()
    return [np.full(n, 0x4141414141414141) for n in range(1, 400) for _ in range(20)]


def half_made(comm, kind):
    """Return the errors for an object on which only ``__new__`` was called, and for None.

    numba checks the class of an argument, but not the class of a value from an objmode block.
    """
    made = KINDS[kind].make(comm)
    wrong = type("Sub", (type(made),), {}).__new__(type(made))
    get = from_objmode(numba.typeof(made))["get"]
    # The slot has to be empty now, because numba 0.61 pickles what is in the slot.
    get.compile((types.int64,))
    told = [str(raises(TypeError, njit(lambda held: held), wrong))]
    for given in (wrong, None):
        told.append(str(raises(TypeError, get, in_slot(given))))
    return told
