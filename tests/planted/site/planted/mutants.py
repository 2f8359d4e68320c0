"""Makes the kernel of a fault: a module with the true kernel's source and a few changed lines.

Such a module is a mutant. A mutant is written to a file, because numba caches only functions of
files. The file lies in the ``__pycache__`` beside ``mutants.py``, or among temporary files if
nothing can be written there. The first line of the file has a hash of all that the mutant is made
of, so numba compiles anew after a change. The first process that needs the mutant writes the file,
and ranks, which come later, find the file written.
"""

import ast
import hashlib
import importlib.util
import os
import pathlib
import sys
import tempfile

import cobre_kernels

from planted import parts
from planted.faults import patched

TRUE_KERNELS = pathlib.Path(cobre_kernels.__file__).parent
HERE = pathlib.Path(__file__).parent


def mutant_source(fault):
    """Return the source of the module that has the faulty kernel."""
    changed = patched((TRUE_KERNELS / fault.path).read_text(), fault.hunks)
    made_of = [*sorted(TRUE_KERNELS.rglob("*.py")), pathlib.Path(parts.__file__)]
    digest = hashlib.sha256("".join([changed, *(p.read_text() for p in made_of)]).encode())
    end_of_docstring = ast.parse(changed).body[0].end_lineno
    lines = changed.splitlines(keepends=True)
    lines.insert(end_of_docstring, "\nfrom planted import parts\n")
    return f"# {fault.name}: {digest.hexdigest()}\n" + "".join(lines)


def faulty_kernel(fault):
    """Return the faulty kernel; the first use of its address compiles it, or loads its code."""
    name = f"planted.mutants_{fault.name.replace('-', '_')}"
    if name not in sys.modules:
        path = _write(f"{fault.name.replace('-', '_')}.py", mutant_source(fault))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return getattr(sys.modules[name], fault.changed)


def _write(name, source):
    for folder in (HERE / "__pycache__", pathlib.Path(tempfile.gettempdir()) / "planted"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / name
            if not path.exists() or path.read_text() != source:
                draft = path.with_suffix(f".{os.getpid()}")
                draft.write_text(source)
                draft.replace(path)
        except OSError:
            continue
        return path
    raise OSError(f"cannot write {name}; make {HERE} or the folder of temporary files writable")
