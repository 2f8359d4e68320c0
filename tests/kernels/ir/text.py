"""LLVM IR as text: functions, their blocks, and instructions cut into operation and operands.

Only what an analysis of addresses needs. An operation that this file does not know is an error, so
nothing that touches memory can slip through.
"""

import dataclasses
import functools
import re

from llvmlite import binding

# Operations that neither touch memory nor call anything.
_SILENT = """
    add sub mul sdiv udiv srem urem shl lshr ashr and or xor icmp fcmp fadd fsub fmul fdiv fneg
    frem trunc zext sext fptosi sitofp uitofp fpext fptrunc bitcast inttoptr ptrtoint addrspacecast
    getelementptr phi select freeze extractvalue insertvalue extractelement insertelement
    shufflevector alloca br switch ret unreachable fence
"""
SILENT = set(_SILENT.split())
TOUCHING = {"load", "store", "cmpxchg", "atomicrmw", "call", "invoke"}
CONSTANT_EXPRESSIONS = {"splat", "inttoptr", "ptrtoint", "getelementptr", "add", "sub", "xor"}
BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "ptr": 64}

NAME = r'"(?:[^"\\]|\\.)*"|[-\w.$]+'
_ASSIGNED = re.compile(rf"\s+(%(?:{NAME})) = (.*)", re.DOTALL)
_CALLED = re.compile(rf"[@%]({NAME})\(")


@dataclasses.dataclass
class Instruction:
    """One instruction; ``text`` is without its result and its metadata."""

    result: str | None
    operation: str
    text: str

    def __str__(self):
        return f"{self.result} = {self.text}" if self.result else self.text


@dataclasses.dataclass
class Function:
    """A function: the names of its parameters, and its instructions block by block."""

    name: str
    parameters: list[str]
    blocks: list[list[Instruction]]

    def instructions(self):
        """Every instruction, in the order of the text."""
        return [i for block in self.blocks for i in block]


def unquoted(name):
    """Return a name without quotes."""
    return name[1:-1] if name.startswith('"') else name


@functools.cache
def split(text):
    """Split at the commas outside of brackets and of quoted names."""
    parts, depth, begin, quoted = [], 0, 0, False
    for index, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:index].strip())
            begin = index + 1
    last = text[begin:].strip()
    return (*parts, last) if last else tuple(parts)


def _tokens(text):
    """Split at the spaces outside of brackets and of quoted names."""
    tokens, depth, quoted, token = [], 0, False, ""
    for character in text:
        quoted ^= character == '"'
        if not quoted:
            depth += (character in "([{<") - (character in ")]}>")
        if character == " " and depth == 0 and not quoted:
            tokens.append(token)
            token = ""
        else:
            token += character
    return [t for t in [*tokens, token] if t]


@functools.cache
def operand(text):
    """Return the value at the end of ``type attributes value``."""
    tokens = _tokens(text)
    if tokens[-1].startswith("("):  # a constant expression, such as ``inttoptr (i64 1 to ptr)``
        starts = [i for i, t in enumerate(tokens) if t in CONSTANT_EXPRESSIONS]
        return " ".join(tokens[starts[-1] :])
    return tokens[-1]


def _closing(text, begin):
    depth = 0
    for index in range(begin, len(text)):
        depth += {"<": 1, "[": 1, "{": 1, "(": 1}.get(text[index], 0)
        depth -= {">": 1, "]": 1, "}": 1, ")": 1}.get(text[index], 0)
        if depth == 0:
            return index
    raise ValueError(text)


@functools.cache
def called(text):
    """Return the name of the function that a call calls, and its arguments."""
    match = _CALLED.search(text)
    if match is None:
        raise ValueError(f"a call of no name: {text}")
    begin = match.end() - 1
    inside = text[begin + 1 : _closing(text, begin)]
    return unquoted(match.group(1)), [operand(a) for a in split(inside)]


def type_bytes(name):
    """Return the size of a scalar or vector type."""
    vector = re.fullmatch(r"<(\d+) x (\S+)>", name)
    if vector:
        return int(vector.group(1)) * type_bytes(vector.group(2))
    array = re.fullmatch(r"\[(\d+) x (.*)\]", name)
    if array:
        return int(array.group(1)) * type_bytes(array.group(2))
    return BITS[name] // 8 if name in BITS else -(-int(name.removeprefix("i")) // 8)


def _instruction(reference):
    assigned = _ASSIGNED.match(str(reference))
    result, text = assigned.groups() if assigned else (None, str(reference).strip())
    text = re.sub(r"(?:, |\s)!\S+ !\d+", "", text).rstrip(",")
    operation = reference.opcode
    if operation not in SILENT | TOUCHING:
        raise ValueError(f"an operation that text.py does not know: {text}")
    return Instruction(result, operation, text)


@functools.lru_cache(maxsize=4)
def parse(text):
    """Return the functions that a module defines, by name."""
    return {
        f.name: Function(
            f.name,
            [f"%{argument.name}" for argument in f.arguments],
            [[_instruction(i) for i in block.instructions] for block in f.blocks],
        )
        for f in binding.parse_assembly(text).functions
        if not f.is_declaration
    }
