"""From the IR of a kernel, or of a part, to its accesses."""

import collections

from tests.kernels import ir_text, ir_values, shared_words
from tests.kernels.ir_accesses import Analysis, short
from tests.kernels.ir_body import STACK

WRAPPERS = ("_ZN7cpython", "cfunc.")
# By the names of the parameters in the sources; all others are numbers.
ADDRESSES = dict.fromkeys(
    ("send", "recv", "buffer", "counts", "displs", "scratch", "record"), "user"
)
ADDRESSES |= {"acc": "data", "x": "data", "payload": "user"}
ROOTS = {"retptr": STACK, "excinfo": STACK, "state": "state", "mpi": "mpi", "address": "word"}


def entry(functions):
    """Return the function itself, of which the module's others are wrappers or parts."""
    return next(f for f in functions.values() if not f.name.startswith(WRAPPERS))


def accesses(text):
    """Return every access of a kernel, or of one of its parts, in its optimised IR."""
    functions = ir_text.parse(text)
    function = entry(functions)
    arguments = []
    for parameter in function.parameters:
        root = {**ADDRESSES, **ROOTS}.get(parameter.removeprefix("%").removeprefix("arg."))
        arguments.append(ir_values.UNKNOWN if root is None else ir_values.exactly(0, root))
    analysis = Analysis(functions, shared_words.fields, shared_words.rebase)
    analysis.run(function.name, arguments)
    return analysis.accesses


def blocks(text):
    """Yield, for each block of the function itself, what it does to shared words, in order."""
    by_text = collections.defaultdict(set)
    function = entry(ir_text.parse(text))
    name = short(function.name)
    for access in accesses(text):
        if access.function == name:
            by_text[access.text] |= shared_words.operations([access])
    for block in function.blocks.values():
        yield [o for instruction in block for o in sorted(by_text[str(instruction)])]


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
