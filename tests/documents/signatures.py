"""The public names with their signatures, as text.

``python -m tests.documents.signatures`` writes the text into ``signatures.txt``, so that a change
of what users write is seen in review.
"""

import enum
import importlib
import inspect
import re
from pathlib import Path

from cobre_comm.arguments.other_names import OtherName
from cobre_comm.old_names import OLD_NAMES, OldName

FILE = Path(__file__).with_suffix(".txt")
MODULES = ("cobre_comm", "cobre_comm.objects", "cobre_comm.random", "cobre_comm.testing")
ATTRIBUTES = re.compile(
    r"^Attributes\n-+\n(.*?)(?:\n\n\w[\w ]*\n-+\n|\Z)", re.DOTALL | re.MULTILINE
)


class _Plain:
    """An annotation that is shown as it stands in the source, in every version of Python."""

    def __init__(self, annotation):
        text = getattr(annotation, "__forward_arg__", annotation)  # in a NamedTuple: ForwardRef
        self._text = text if isinstance(text, str) else inspect.formatannotation(text)

    def __repr__(self):
        return self._text


def public():
    """Return each public object by module and name."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        found.update({(module.__name__, name): getattr(module, name) for name in module.__all__})
    return found


def signature(function, first=0):
    """Return the signature of a function, without its first parameters."""
    told = inspect.signature(function)
    parameters = [
        each if each.annotation is each.empty else each.replace(annotation=_Plain(each.annotation))
        for each in list(told.parameters.values())[first:]
    ]
    result = told.return_annotation
    if result is not told.empty:
        result = _Plain(result)
    return told.replace(parameters=parameters, return_annotation=result)


def _is_ours(cls):
    return cls.__module__.partition(".")[0] == "cobre_comm"


def constructor(cls):
    """Return the parameters of a class, as text; "" for a class that takes none of its own."""
    for base in filter(_is_ours, cls.__mro__):
        name = "__new__" if issubclass(base, tuple) else "__init__"
        if name in vars(base):
            told = signature(vars(base)[name], first=1)
            return str(told.replace(return_annotation=told.empty))
    return ""


def member(cls, name):
    """Return the text of a member of a class; "" if the member is not for users."""
    owner = next((base for base in cls.__mro__ if name in vars(base)), None)
    if owner is None or not _is_ours(owner):
        return ""
    value = vars(owner)[name]
    if isinstance(value, OldName):
        return f".{name}: old name of {OLD_NAMES[cls._holder][name]}"
    if isinstance(value, OtherName):
        return ""
    if isinstance(value, enum.Enum):
        return f".{name} = {value.value!r}"
    if isinstance(value, property):
        return f".{name}: {signature(value.fget).return_annotation}"
    if isinstance(value, (classmethod, staticmethod)):
        return f".{name}{signature(getattr(cls, name))}"
    return f".{name}{signature(value, first=1)}" if inspect.isfunction(value) else ""


def attributes(cls):
    """Yield the text of each attribute that the docstring of a class names."""
    found = ATTRIBUTES.search(inspect.getdoc(cls) or "")
    for line in found[1].splitlines() if found else ():
        if re.match(r"\w[\w, ]* : ", line):
            names, _, kind = line.partition(" : ")
            yield from (f".{name}: {kind}" for name in names.split(", "))


def members(cls, classes):
    """Return the members of a class that its bases in ``classes`` lack, or have in another form."""
    bases = [base for base in cls.__mro__[1:] if base in classes]
    found = set(attributes(cls)).union(member(cls, n) for n in dir(cls) if n[0] != "_")
    return sorted(found - {""} - {text for base in bases for text in members(base, classes)})


def text():
    """Return a line for each public name, and for each member of a class."""
    objects = public()
    classes = [value for value in objects.values() if inspect.isclass(value)]
    lines = []
    for (module, name), value in objects.items():
        if inspect.isclass(value):
            lines.append(f"{module}.{name}{constructor(value)}")
            lines += [f"    {line}" for line in members(value, classes)]
        elif callable(value):
            lines.append(f"{module}.{name}{signature(value)}")
        else:
            lines.append(f"{module}.{name}: {value}")
    lines += [
        f"cobre_comm.random.{old}: old name of {new}" for old, new in OLD_NAMES["random"].items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    print(f"{FILE} is written: look at its changes")
