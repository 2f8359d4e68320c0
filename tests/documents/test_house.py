"""The runtime does not grow unnoticed, and no two of its classes or modules share a name."""

import ast
import collections
import pathlib
import re
import tokenize

from tests.imports import imports

ROOT = pathlib.Path(__file__).parents[2]
KERNELS, PACKAGE = ROOT / "kernels" / "cobre_kernels", ROOT / "cobre_comm"
# Lines of code of the runtime: without docstrings, comments, blank lines and imports. To lower
# the number needs no words, and each raise has its reason here: by 90 so that no fold depends on
# the floating-point mode of a thread; by 70 so that no two versions meet; by 56 so that ranks
# compare which call of mpi4py they make; by 169 so that the bridge says what it lacks, keeps
# windows and pickles as mpi4py does, and folds large blocks as they arrive; by 168 so that errors
# name what a user has given and what to do; by 62 so that threads, second interpreters, routines
# of any form and file systems without locks crash nothing; by 28 so that an exception that was
# shown ends no rank, and no file of the current folder is run; by 41 so that machine code is run
# only unchanged, on a processor that has it, in memory that may be executed; by 174 so that kernels
# are a shared library, which is linked, asks the processor whether it may run, and is taken from a
# folder only after a look at its access list; by 35 so that a rank starts without a Python before
# it, and errors name the cure where a test's rank cannot import its program, and where cobre_comm
# and cobre_kernels are of two versions; by 15 so that numba compiles an implementation once where
# it compiled it twice; by 3 so that the build of kernels looks for no garbage, the table of cases
# forks its ranks, and a port that closes hides no error; by 161 so that leaders over tcp exchange
# headers in log2 N hops where their links are fast; by 50 so that statistics say which way large
# calls take; by 306 so that communicators measure the ways of large calls, both ends copy in a
# broadcast, nobody writes to an array after its call, two ranks fold halves in place, and no rank
# folds data of a rank that has failed; by 151 so that names of 0.4 still work, and warn, beside the
# names of 1.0: these lines go with 1.0.
MOST_LINES = 20_669
MOST_MODULES = 12  # beside the packages
CODE = {tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING} | {
    getattr(tokenize, f"FSTRING_{part}", tokenize.STRING) for part in ("START", "MIDDLE", "END")
}
APART = ("testing", "check")  # folders that judge backends, and are no part of the runtime


def runtime():
    """Return every file that a rank or a launcher may load."""
    ours = [
        path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in APART
    ]
    return sorted([*KERNELS.rglob("*.py"), *ours])


def lines_of_code(path):
    """Return how many lines have code that is neither a docstring nor an import."""
    text = path.read_text()
    left_out = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or is_text:
            left_out.update(range(node.lineno, node.end_lineno + 1))
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type in CODE]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - left_out)


def test_the_runtime_does_not_grow():
    lines = sum(map(lines_of_code, runtime()))
    assert lines <= MOST_LINES
    assert lines > MOST_LINES - 100, (
        f"lower MOST_LINES to {lines}, so that the runtime stays so small"
    )


def test_no_two_classes_share_a_name():
    homes = collections.defaultdict(list)
    for path in runtime():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


# Two modules share a name only if they do the same thing: for each backend, for each collective,
# for each transport or protocol of kernels, or once in Python and once in kernels.
OF_EACH = [
    "backend",
    "spec",
    "split",
    "memory",
    "meet",
    "node_order",
    "council",
    "command",
    "barrier",
    "failing",
    "broadcast",
    "allreduce",
    "allgatherv",
    "gatherv",
    "exact_sum",
    "derived",
    "calls",
    "control",
    "messages",
    "failing",
    "protocol",
    "reading",
    "records",
    "verbs",
    "waiting",
    "draws",
    "lanes",
    "links",
    "objects",
    "phases",
    "progress",
    "region",
    "regions",
    "signals",
    "sockets",
    "trace",
    "work",
]


def test_no_two_modules_share_a_name_but_for_one_thing():
    stems = collections.Counter(path.stem for path in runtime() if path.stem[:2] != "__")
    shared = {stem for stem, times in stems.items() if times > 1}
    assert shared == set(OF_EACH)


def test_a_reader_finds_packages_and_few_modules():
    modules = [path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert len(modules) <= MOST_MODULES, sorted(modules)


def _imported(tree):
    """Yield the whole name of each module that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


# No other two modules import each other. The compiler imports what `compiled` declares. `compiled`
# imports the compiler only when numba asks a declared function for its type.
DOOR = ("cobre_kernels.machine.compiled", "cobre_kernels.machine.compiling.compiler")


def test_no_two_files_import_each_other():
    pairs = {(one, other) for one, found in imports().items() for other in found}
    assert {(one, other) for one, other in pairs if (other, one) in pairs and one < other} == {DOOR}


def test_only_what_compiles_imports_numba_or_llvm_as_it_is_loaded():
    compiling = {KERNELS / "machine" / "compiling", PACKAGE / "jit"}
    for path in runtime():
        heads = [node for node in ast.parse(path.read_text()).body if not hasattr(node, "body")]
        found = {name.partition(".")[0] for head in heads for name in _imported(head)}
        assert not found & {"numba", "llvmlite"} or compiling & {*path.parents}, path


def test_the_examples_use_what_the_reference_documents():
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    documented = set(re.findall(r"^\.\. (?:current|auto)?module:: (\S+)$", pages, re.MULTILINE))
    assert {"cobre_comm", "cobre_comm.random"} <= documented
    ours = {
        module
        for path in (ROOT / "examples").rglob("*.py")
        for module in _imported(ast.parse(path.read_text()))
        if module.startswith("cobre_")
    }
    assert ours
    assert ours - documented == {"cobre_comm.contract.routine"}  # for examples/sddp/compiled.py
