"""The objects of ours that ``@njit`` code takes: a table, from which numba gets all it asks for.

A subclass of :class:`ObjectType` lists the fields that compiled code holds of one kind of object.
Model and boxing (``values``), reference counts (``holding``) and messages about attributes
(``attributes``) are written once, for all kinds. The attributes and methods of each kind have a
module of their own.

numba sees two types of communicators: ``local``, with collectives that compile to copies, and all
others. So a user's function is compiled once for ``local`` and once for all other backends. The
name of a type contains a hash of our sources. So for a signature with such a type, numba's cache
never returns code of another version. Code without a type of ours in its signature carries a
:class:`CurrentVersion`.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.regions import REGION_STATE
from cobre_kernels.collective.work import WORK
from cobre_kernels.machine.code import name_functions
from cobre_kernels.machine.compiling.record_types import RecordType
from cobre_kernels.machine.version import hash_of, kernel_sources, sources_of
from numba import types

from cobre_comm.arguments import mistakes
from cobre_comm.arguments.arrays import REGION_IS_NO_ARRAY
from cobre_comm.arguments.other_names import SAID
from cobre_comm.contract.communicator import Communicator
from cobre_comm.contract.shared_region import SharedRegion
from cobre_comm.contract.work import Work

COMM_TYPE = RecordType(COMM.name)
STATE_TYPE = RecordType(REGION_STATE.name)
WORK_TYPE = RecordType(WORK.name)
_by_name: dict[str, type[ObjectType]] = {}  # by the name of the class, which pickles contain

name_functions()  # here: a pickle of compiled code imports this file before the code is linked


@functools.cache
def version_tag() -> str:
    """Return a hash of all sources that become a part of users' compiled functions."""
    package = pathlib.Path(__file__).parents[1]
    parts = "arguments", "contract", "jit", "journal", "reports", "system"
    return str(hash_of([*kernel_sources(), *sources_of(package, parts)]))


class CurrentVersion:
    """A constant in a cached function, so that other versions of this package do not load it."""

    def __reduce__(self) -> Any:
        return current_version, (version_tag(),)


def carry_version(context: Any) -> None:
    """Keep the function under compilation from being loaded by another version of this package.

    A value of ours gets into compiled code in three ways: as an argument, as the result of an
    ``objmode`` block, or as a constant. The signature contains the type of an argument, but not the
    type of a result or a constant. So the code that lowers a result or a constant calls
    ``carry_version``, and so does the code of each method and attribute. In the cache, a function
    has the constants of all functions that are linked into it, so a caller without a type of ours
    carries the version too.
    """
    constants = getattr(context.environment, "consts", None)  # None, if a wrapper is compiled
    if constants is not None and not any(isinstance(each, CurrentVersion) for each in constants):
        constants.append(CurrentVersion())


def current_version(tag: str) -> CurrentVersion:
    """Return the constant, or raise ``FileNotFoundError``, after which numba compiles anew."""
    if tag != version_tag():
        raise FileNotFoundError("compiled with another version of cobre_comm")
    return CurrentVersion()


def restored(name: str, class_name: str, *arguments: Any) -> Any:
    """Return a pickled type; for another version, a type that equals no other type.

    numba keeps the types of a user's cached function in pickles. It loads these types before it
    looks at the version, and it writes types of older versions again. So a pickle has the name of
    the type, and the name of this function, which every version has.
    """
    current = _by_name[class_name](*arguments) if class_name in _by_name else None
    return current if current is not None and current.name == name else types.Opaque(name)


class HeldField(NamedTuple):
    """A field that compiled code holds of an object."""

    name: str  # the name by which compiled code reads the field
    path: str  # the Python object's attribute that has the value, or the address of the record
    numba_type: Any = None  # None: the object's type has the field's type as attribute ``name``


class ObjectType(types.Type):  # type: ignore[misc]  # numba is untyped
    """A kind of object in ``@njit`` code; each subclass is a row of the table.

    ``label`` is the beginning of the type's name. ``arguments`` are the arguments of the class's
    ``__init__``, which the pickle contains.
    """

    what: ClassVar[str]  # the name of such objects in messages
    variable: ClassVar[str]  # the name of a variable that holds such an object
    python: ClassVar[type]  # the Python class, for messages about calls of its methods
    # The fields that compiled code holds, beside a count on the Python object. The first field is
    # the record of the communicator.
    fields: ClassVar[tuple[HeldField, ...]]
    # Names that the object lacks, each with the rest of a message about the name.
    said: ClassVar[Mapping[str, str]] = {}
    no_text: ClassVar[str] = ""  # what to write in place of ``str``
    no_constant: ClassVar[str] = ""  # why a global or a closure cannot hold such an object
    # What to write in place of an index, ``len`` or a ``for`` loop, and the word for
    # ``cobre-comm explain``.
    no_sequence: ClassVar[tuple[str, str] | None] = None
    # By name of an attribute or method, whether it is a collective; ``attributes`` fills this.
    members: ClassVar[dict[str, bool]]
    # More methods that threads of ``prange`` must not call; ``attributes`` fills this too.
    of_one_thread: ClassVar[set[str]]
    lent: ClassVar[type[Borrowed]]  # the type of such an object inside its own methods
    synchronises = True  # whether collectives wait for other ranks

    def __init_subclass__(cls) -> None:
        if "fields" in vars(cls):
            cls.members, cls.of_one_thread = {}, set()
            cls.lent = type(f"Borrowed{cls.__name__}", (Borrowed,), {})
        _by_name[cls.__name__] = cls

    def __init__(self, label: str = "", *arguments: Any) -> None:
        self._arguments = arguments
        words = ", ".join(map(str, [*arguments, version_tag()]))
        super().__init__(name=f"{label or type(self).__name__}({words})")

    @property
    def borrowed(self) -> Any:
        """The type of such an object inside its own methods."""
        return self.lent(self)

    @property
    def field_types(self) -> dict[str, Any]:
        """The types of the object's fields, by name."""
        return {one.name: one.numba_type or getattr(self, one.name) for one in self.fields}

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of attributes and methods, in the order in which messages list them."""
        return sorted(cls.members)

    def __reduce__(self) -> Any:
        return restored, (self.name, type(self).__name__, *self._arguments)


class Borrowed(types.Type):  # type: ignore[misc]  # numba is untyped
    """The type of an object inside its own methods, while the caller holds the object."""

    def __init__(self, this: Any) -> None:
        self.this, self.synchronises = this, this.synchronises
        super().__init__(name=f"Borrowed({this})")

    def __reduce__(self) -> Any:
        return lend, (self.this,)


def lend(this: Any) -> Any:
    """Return a pickled ``Borrowed`` type; for another version, a type that equals no other type."""
    return this.borrowed if isinstance(this, ObjectType) else this


_IN_PYTHON = (
    "works in Python alone: pass the number of the phase, and call comm.enter_phase(number)"
)
_OF_PHASES = dict.fromkeys(("phase", "phase_number"), _IN_PYTHON)


class CommType(ObjectType):
    """A communicator in ``@njit`` code."""

    what, variable, python = "a communicator", "comm", Communicator
    fields = (HeldField("comm", "_address", COMM_TYPE),)
    said: ClassVar[Mapping[str, str]] = {**SAID, **_OF_PHASES}
    no_text = 'f"rank {comm.rank} of {comm.size}"'

    @classmethod
    def names(cls) -> list[str]:
        """Return the names, collectives first."""
        return sorted(cls.members, key=lambda name: (not cls.members[name], name))


class LocalCommType(CommType):
    """The communicator of ``local``."""

    synchronises = False


class RegionType(ObjectType):
    """A shared region in ``@njit`` code.

    ``synchronises`` says whether the region belongs to a communicator that waits for other ranks.
    If a rank shares no memory, its region is on the heap, and has the same type as a shared region.
    """

    what, variable, python = "a shared region", "region", SharedRegion
    fields = (
        HeldField("comm", "_comm._address", COMM_TYPE),
        HeldField("state", "_address", STATE_TYPE),
        HeldField("view", "_readable"),
        HeldField("is_shared", "_is_shared", types.boolean),
    )
    no_text = 'f"{region.count} elements"'
    no_constant = (
        "a shared region cannot be a global or closure variable of @njit code; "
        "pass it as an argument"
    )
    no_sequence = (REGION_IS_NO_ARRAY, mistakes.REGION)

    def __init__(self, dtype: Any, ndim: int, synchronises: bool) -> None:
        self.view = types.Array(dtype, ndim, "C", readonly=True)
        self.memory = types.Array(dtype, ndim, "C")
        self.synchronises = synchronises
        super().__init__("SharedRegion", dtype, ndim, synchronises)


class WorkType(ObjectType):
    """Shared-out work in ``@njit`` code."""

    what, variable, python = "a work", "work", Work
    fields = (
        HeldField("comm", "_comm._address", COMM_TYPE),
        HeldField("state", "_address", WORK_TYPE),
    )
    no_text = 'f"{work.count} items"'
    no_sequence = (
        "a work is no sequence in @njit code: let a while loop call item = work.claim(), until "
        "that is -1; work.count is the number of items",
        mistakes.WORK,
    )


OBJECT_TYPES = tuple(_by_name.values())
