"""Names and signatures that users write change only with `signatures.txt`, which a review sees."""

import re

import pytest

from tests.documents import signatures

# What return annotations name, beside public names: names of Python, NumPy and pytest, aliases of
# arrays, and the value of a user's function.
OF_OTHERS = {
    "Any", "BaseException", "ExceptionInfo", "Iterator", "NDArray", "NoReturn", "None", "bool",
    "dict", "float", "float64", "int", "int64", "list", "np", "pytest", "str", "tuple",
    "Table", "Value",
    "local",  # a module
}  # fmt: skip
LINES = signatures.text().splitlines()


def test_public_names_and_signatures_are_the_recorded_ones():
    recorded = signatures.FILE.read_text().splitlines()
    told = "python -m tests.documents.signatures records them; review what changes for users"
    assert recorded == LINES, told


@pytest.mark.parametrize("line", [line.strip() for line in LINES if ") -> " in line])
def test_a_method_returns_what_is_public(line):
    """Users need the name of a type for their annotations, and the type in the reference."""
    result = line.rpartition(") -> ")[2]
    public = {name for _, name in signatures.public()}
    assert set(re.findall(r"\w+", result)) <= public | OF_OTHERS
