"""From the IR of a kernel, or of a part, to its accesses."""

import collections

from cobre_kernels.machine.record import Record

from tests.kernels import shared_words
from tests.kernels.ir import text as ir_text
from tests.kernels.ir import values as ir_values
from tests.kernels.ir.accesses import Analysis, short
from tests.kernels.ir.body import STACK

WRAPPERS = ("_ZN7cpython", "cfunc.")
# The fields of calls that are addresses; all others are numbers.
ADDRESSES = dict.fromkeys(
    ("send", "recv", "buffer", "counts", "displs", "values", "digits", "scratch", "payload"), "user"
)
ADDRESSES |= {"acc": "data", "x": "data"}


def entry(functions):
    """Return the function itself, of which the module's others are wrappers or parts."""
    return next(f for f in functions.values() if not f.name.startswith(WRAPPERS))


def roots(arguments):
    """Return the roots of the parameters that numba makes of such arguments; None: a number."""
    found = [STACK, STACK]  # for the result, and for an exception
    for argument in arguments:
        if isinstance(argument, Record):
            found.append(argument.name)
        else:
            found += [None] if argument is int else map(ADDRESSES.get, argument._fields)
    return found


def accesses(text, arguments):
    """Return every access of a kernel, or of one of its parts, in its optimised IR."""
    functions = ir_text.parse(text)
    function = entry(functions)
    values = [
        ir_values.UNKNOWN if root is None else ir_values.exactly(0, root)
        for root in roots(arguments)
    ]
    assert len(values) == len(function.parameters), function.parameters
    analysis = Analysis(functions, shared_words.points_to, shared_words.rebase)
    analysis.run(function.name, values)
    return analysis.accesses


def complaints(found):
    """Return what is wrong with some accesses."""
    return [c for access in found if (c := shared_words.complaint(access)) is not None]


def in_one_block(text, arguments):
    """Return what each block of a part's own function does to shared words, in order."""
    by_text = collections.defaultdict(set)
    function = entry(ir_text.parse(text))
    name = short(function.name)
    for access in accesses(text, arguments):
        if access.function == name:
            by_text[access.text] |= shared_words.operations([access])
    blocks = [
        [operation for i in block for operation in sorted(by_text[str(i)])]
        for block in function.blocks
    ]
    return [block for block in blocks if block]


def wrapped(text):
    """Return the instructions of the wrappers that would have to be in :func:`accesses` too."""
    functions = ir_text.parse(text)
    name = entry(functions).name
    found = []
    for function in functions.values():
        if function.name.startswith(WRAPPERS):
            calls = [i for i in function.instructions() if i.operation == "call"]
            assert name in [ir_text.called(i.text)[0] for i in calls], function.name
            found += [i for i in function.instructions() if is_atomic(i)]
    return found


def is_atomic(instruction):
    """Whether an instruction is one of LLVM's atomic ones."""
    return instruction.operation in ("cmpxchg", "atomicrmw", "fence") or bool(
        instruction.operation in ("load", "store") and instruction.text.split()[1] == "atomic"
    )


def stack_in_loops(text):
    """Return the functions that take stack after their first block: in a loop, without end."""
    return [
        function.name
        for function in ir_text.parse(text).values()
        for block in function.blocks[1:]
        if any(instruction.operation == "alloca" for instruction in block)
    ]
