"""Which of our modules each file imports: at its beginning, in functions, by ``import_module``.

Imports for annotations alone do not count.
"""

import ast
import functools
import pathlib

ROOT = pathlib.Path(__file__).parents[1]
PLACES = {
    **dict.fromkeys(("cobre_comm", "bench", "places", "release", "tests"), ROOT),
    "cobre_kernels": ROOT / "kernels",
}


@functools.cache
def files():
    """Return the file of each module, by the name of the module."""
    found = {}
    for package, place in PLACES.items():
        for path in (place / package).rglob("*.py"):
            parts = path.relative_to(place).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _names(node, known):
    """Return the names of modules that a statement or an expression may import."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom):
        inside = [f"{node.module}.{each.name}" for each in node.names]
        return [name if name in known else node.module for name in inside]
    is_call = isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func)
    return [each.value for each in node.args if isinstance(each, ast.Constant)] if is_call else []


def _imported(path, known):
    waiting, found = [ast.parse(path.read_text())], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        found.update(_names(node, known))
        waiting += ast.iter_child_nodes(node)
    return found & known


@functools.cache
def imports():
    """Return, by the name of each module, the names of the modules that this module imports."""
    known = files().keys()
    return {name: _imported(path, known) - {name} for name, path in files().items()}


def reached(*packages):
    """Return the modules of some packages, what these import, what those import, and so on."""
    found, waiting = set(), [n for n in imports() for p in packages if f"{n}.".startswith(f"{p}.")]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports()[name]
    return found


def folders(modules):
    """Return the folders of `cobre_comm` that have these modules."""
    package = ROOT / "cobre_comm"
    places = (files()[name].relative_to(package) for name in modules if name[:11] == "cobre_comm.")
    return {place.parts[0] for place in places if len(place.parts) > 1}
