"""The values in one function's IR, for such arguments: see values.py for what a value is."""

import re

from tests.kernels.ir import text as ir_text
from tests.kernels.ir import values as ir_values
from tests.kernels.ir.values import NOWHERE, UNKNOWN

STACK = "stack"
C_MEMORY = "C"  # what a C function returned the address of, as errno's
CHOICES = ("llvm.smin.", "llvm.smax.", "llvm.umin.", "llvm.umax.")
GATHERS = ("llvm.masked.gather.", "llvm.masked.load.")
RETURN_ADDRESSES = {"__errno_location", "__error"}
PASSING = {"inttoptr", "ptrtoint", "bitcast", "freeze", "zext", "sext"}
JOINING = {"insertelement", "extractelement", "shufflevector", "insertvalue", "extractvalue"}
DIVIDING = {"sdiv", "udiv", "srem", "urem", "ashr", "xor"}
MOST_ROUNDS = 50


class Body:
    """A function with its arguments; ``analysis`` knows the other functions and the memory."""

    def __init__(self, analysis, function, arguments):
        self.analysis = analysis
        self.function = function
        self._values = dict(zip(function.parameters, arguments, strict=True))
        self._widened = {}  # of each phi, before a place gets another name

    def evaluate(self):
        """Evaluate until nothing changes; return what the function returns."""
        for round_number in range(MOST_ROUNDS):
            before = dict(self._values)
            for instruction in self.function.instructions():
                if instruction.result is not None:
                    new = self._value(instruction)
                    if instruction.operation == "phi" and round_number > 1:
                        known = self._widened.get(instruction.result, before[instruction.result])
                        new = ir_values.widen(known, new)
                        self._widened[instruction.result] = new
                    self._values[instruction.result] = self.analysis.seen_from(new)
            if self._values == before:
                break
        else:
            raise AssertionError(f"{self.function.name}: addresses do not converge")
        returns = [i for i in self.function.instructions() if i.operation == "ret"]
        return ir_values.join(*(self.of(ir_text.operand(i.text)) for i in returns))

    def of(self, text):
        """Return the value of an operand."""
        value = ir_values.constant(text)
        return self._values.get(text, {}) if value is None else value

    def argument(self, text):
        """Return the value of an argument of a call; one that does not matter is a number."""
        return UNKNOWN if text in ("undef", "poison") else self.of(text)

    def _operands(self, instruction):
        """Return the operands of ``op flags type a, b``."""
        return [self.of(ir_text.operand(p)) for p in ir_text.split(instruction.text)]

    def _value(self, instruction):
        operation, text = instruction.operation, instruction.text
        if operation == "phi":
            incoming = re.findall(r"\[ (.*?), %(?:" + ir_text.NAME + r") \]", text)
            return ir_values.join(*(self.of(value) for value in incoming))
        if operation == "alloca":
            return {STACK: (frozenset({0}), 1)}
        if operation == "getelementptr":
            return self._element(text)
        if operation == "load":
            return self.analysis.loaded(self.address(instruction))
        if operation in ("call", "invoke"):
            return self._returned(instruction)
        if operation in PASSING:
            return self.of(ir_text.operand(text.rpartition(" to ")[0] or text))
        if operation == "trunc":
            value = self.of(ir_text.operand(text.rpartition(" to ")[0]))
            if ir_values.is_number(value):
                return value
            bits = 8 * ir_text.type_bytes(text.rpartition(" to ")[2])
            return UNKNOWN if 1 << bits <= ir_values.PAGE_BYTES else _mangled([value])
        return self._computed(operation, text, instruction)

    def _computed(self, operation, text, instruction):
        values = self._operands(instruction)
        if operation in ("add", "sub"):
            return ir_values.add(*values, sign=1 if operation == "add" else -1)
        if operation == "mul":
            return ir_values.multiply(*values)
        if operation in ("shl", "lshr"):
            numbers = ir_values.exact_numbers(values[1])
            bits = min(numbers) if numbers is not None and len(numbers) == 1 else None
            if operation == "lshr":
                return ir_values.shift_right(values[0], bits)
            if bits is not None:
                return ir_values.multiply(values[0], ir_values.exactly(1 << bits))
            return _mangled(values)
        if operation == "and":
            return ir_values.mask(*values)
        if operation == "or":
            if " disjoint " in text:
                return ir_values.add(*values)
            return ir_values.either(*values)
        if operation == "select":
            return ir_values.join(*values[1:])
        if operation in JOINING:
            return ir_values.join(*values[: 1 if operation.startswith("extract") else 2])
        return _mangled(values) if operation in DIVIDING else UNKNOWN

    def _element(self, text):
        kind, base, *indices = ir_text.split(
            re.sub(r"^getelementptr(?: [a-z]+(?:\(.*?\))?)*? (?=\S+,|[<\[{])", "", text)
        )
        value = self.of(ir_text.operand(base))
        if set(value) <= {STACK, ir_values.GLOBAL}:
            return {root: (offsets, 1) for root, (offsets, _) in value.items()}
        for index in indices:
            size = ir_values.exactly(ir_text.type_bytes(kind))
            value = ir_values.add(value, ir_values.multiply(self.of(ir_text.operand(index)), size))
            kind = kind.partition(" x ")[2].rstrip("]")
        return value

    def address(self, instruction):
        """Return the address that an instruction accesses."""
        parts = ir_text.split(instruction.text)
        return self.of(
            _pointer(parts[0] if instruction.operation in ("cmpxchg", "atomicrmw") else parts[1])
        )

    def _returned(self, instruction):
        name, arguments = ir_text.called(instruction.text)
        values = [self.argument(a) for a in arguments]
        if self.analysis.knows(name):
            if not all(values):
                return {}  # not computed yet
            # Which number it is makes no difference to a place, and many more cases to run.
            known = [UNKNOWN if ir_values.is_number(v) else v for v in values]
            return self.analysis.run(name, known)
        if name.startswith(CHOICES):
            return ir_values.join(*values)
        if name.startswith(GATHERS):
            return self.analysis.loaded(values[0])
        if name in RETURN_ADDRESSES:
            return ir_values.exactly(0, C_MEMORY)
        return UNKNOWN


def _mangled(values):
    if not all(values):
        return {}  # not computed yet
    return UNKNOWN if all(map(ir_values.is_number, values)) else NOWHERE


def _pointer(text):
    """Return the pointer of ``ptr %x`` in the operand of an access, without its ordering."""
    match = re.search(
        r"\bptr (%(?:" + ir_text.NAME + r")|@(?:" + ir_text.NAME + r")|\S.*?\))", text
    )
    if match:
        return match.group(1)
    return ir_text.operand(text)
