"""Every access to memory in a kernel's IR, with the memory it goes to.

Follows addresses from the kernel's arguments through arithmetic, loops and calls of other compiled
functions. ``fields`` says which words of which memory hold addresses of other memory; every other
word that is loaded is a plain number. Addresses that are themselves written to memory are reported,
because they could come back unseen.
"""

import dataclasses
import re

from tests.kernels.ir import text as ir_text
from tests.kernels.ir import values as ir_values
from tests.kernels.ir.body import CHOICES, GATHERS, Body
from tests.kernels.ir.values import NOWHERE, UNKNOWN

# Intrinsics that write their first argument, and read the second.
COPIES = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")
SCATTERS = ("llvm.masked.scatter.", "llvm.masked.store.")
ORDERINGS = "(?:unordered|monotonic|acquire|release|acq_rel|seq_cst)"


@dataclasses.dataclass(frozen=True)
class Access:
    """One access: what is done where. ``how`` is 'plain', an ordering, 'copy', or what is called.

    That is a C function by its name, or a kernel by the root of its address.
    """

    function: str
    what: str  # load, store, cmpxchg, atomicrmw, call, escape
    how: str
    align: int
    root: str | None
    offsets: frozenset
    stride: int
    text: str


def short(name):
    """Return the Python name in a mangled one: ``wait._spin``."""
    match = re.match(r"_ZN((?:\d+[A-Za-z_]\w*)*?\d+\w*)", name)
    if match is None:
        return name
    parts, rest = [], name[3:]
    while (number := re.match(r"\d+", rest)) is not None:
        begin, length = number.end(), int(number.group())
        parts.append(rest[begin : begin + length])
        rest = rest[begin + length :]
    return ".".join(parts[-2:])


class Analysis:
    """The accesses of a function and of everything it calls.

    Parameters
    ----------
    functions : dict
        What :func:`ir_text.parse` returned.
    fields : callable
        ``fields(root, offset)`` gives the root whose address lies there, or None for a number.
    rebase : callable
        ``rebase(root, offsets, stride)`` gives another name of a place, or None.
    """

    def __init__(self, functions, fields, rebase):
        self._functions = functions
        self._fields = fields
        self._rebase = rebase
        self._results = {}
        self.accesses = set()

    def run(self, name, arguments):
        """Analyse a function for such arguments; return what it returns."""
        arguments = [self.seen_from(a) for a in arguments]
        key = (name, tuple(tuple(sorted(a.items(), key=str)) for a in arguments))
        if key not in self._results:
            self._results[key] = {}  # of a recursive call
            body = Body(self, self._functions[name], arguments)
            self._results[key] = body.evaluate()
            self.accesses |= accesses_of(body)
        return self._results[key]

    def knows(self, name):
        """Whether the module defines a function."""
        return name in self._functions

    def seen_from(self, value):
        """Return a value with its places under other names, where they have one."""
        result = {}
        for root, (offsets, stride) in value.items():
            place = self._rebase(root, offsets, stride) or (root, offsets, stride)
            root, offsets, stride = place
            result = ir_values.join(result, {root: (frozenset(offsets), stride)})
        return result

    def loaded(self, address):
        """Return what a load from an address gives."""
        found = {}
        for root, (offsets, stride) in address.items():
            for offset in offsets:
                target = self._fields(root, offset) if stride == 0 else None
                value = UNKNOWN if target is None else ir_values.exactly(0, target)
                found = ir_values.join(found, value)
        return found


def accesses_of(body):
    """Return the accesses of the function itself, not of what it calls."""
    found = set()
    for instruction in body.function.instructions():
        if instruction.operation in ir_text.TOUCHING:
            for what, how, align, address in _touches(body, instruction):
                # What has no value in the end, as undef, is no address.
                address = address if address or what in ("call", "escape") else NOWHERE
                for root, (offsets, stride) in address.items():
                    found.add(Access(short(body.function.name), what, how, align, root,
                                     offsets, stride, str(instruction)))  # fmt: skip
    return found


def _touches(body, instruction):
    if instruction.operation in ("call", "invoke"):
        yield from _touches_of_call(body, instruction)
        return
    text = instruction.text
    align = re.search(r", align (\d+)", text)
    atomic = re.search(rf" ({ORDERINGS}(?: {ORDERINGS})?), align", text)
    how = atomic.group(1) if atomic else ""
    if "syncscope" in text:  # within a thread, or another machine's notion
        how = f"syncscope {how}"
    if instruction.operation == "atomicrmw":
        how = f"{text.split()[1]} {how}"
    yield (instruction.operation, how or "plain", int(align.group(1)) if align else 0,
           body.address(instruction))  # fmt: skip
    if instruction.operation == "store":
        stored = body.of(ir_text.operand(ir_text.split(text)[0]))
        yield "escape", "stored", 0, _addresses(stored)


def _touches_of_call(body, instruction):
    name, arguments = ir_text.called(instruction.text)
    values = [body.argument(a) for a in arguments]
    by_address = {*body.of(f"%{name}")} - {None}
    if len(by_address) == 1:  # the address has been loaded from a word for addresses of kernels
        name = by_address.pop()
    if body.analysis.knows(name):
        if not all(values):  # never computed, so never followed
            yield "call", name, 0, NOWHERE
        return
    if name.startswith(("llvm.lifetime.", *CHOICES)):
        return
    if name.startswith(COPIES):
        yield "store", "copy", 0, values[0]
        if not name.startswith("llvm.memset."):
            yield "load", "copy", 0, values[1]
    elif name.startswith(GATHERS):
        yield "load", "plain", 0, values[0]
    elif name.startswith(SCATTERS):
        yield "store", "plain", 0, values[1]
    else:
        for value in values:
            yield "call", name, 0, _addresses(value)


def _addresses(value):
    return {root: place for root, place in value.items() if root is not None}
