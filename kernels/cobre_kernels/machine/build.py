"""The build: makes machine code of every kernel, for one or more levels of processors.

``python -m cobre_kernels.machine.build FOLDER`` compiles every kernel of this package by numba, and
writes two files for each level. One is a shared library, if there is a linker
(``compiling/shared_library.py``). The other contains the object files of which the library is made.
At the end each file has a line of JSON, the *table*: the hash of the sources, the system and the
level, the versions of the tools that made the code, a hash of the code, and the length of each
object with its symbols.

The code has two parts: what ranks of one node need, and what leaders of several nodes need in
addition. A separate process makes each part. So the same sources and versions give the same bytes,
on any number of cores. Machine code refers to nothing but the C library and CPython. Any other
undefined name stops the build, and so does a kernel that could raise.
"""

import argparse
import contextlib
import gc
import importlib
import json
import os
import pathlib
import pkgutil
import re
import secrets
import subprocess
import sys
import tempfile
import time

from cobre_kernels.machine.code import PACKAGE, native_target
from cobre_kernels.machine.compiling import shared_library
from cobre_kernels.machine.target import (
    LEVELS,
    LIBRARY,
    OBJECTS,
    file_name,
    levels,
    machine,
    system,
)
from cobre_kernels.machine.version import digest_of, hash_of, source_hash, sources_of

PARTS = ("node", "nodes")
BETWEEN_NODES = ("mpi", "nodes", "tcp")  # the packages of the second part
LOOK_S = 0.02
FROM_C = {
    "__errno_location", "__error", "calloc", "clock_gettime", "fcntl", "free", "memmove",
    "nanosleep", "poll", "process_vm_readv", "process_vm_writev", "recv", "recvmsg", "sched_yield",
    "sendmsg", "syscall", "write",
}  # fmt: skip
FROM_PYTHON = re.compile(r"Py(Dict|Err|Eval|GILState|Long|Object|ThreadState|Tuple)?_\w+")
OWN = shared_library.CURRENT_STATE
# Code calls functions of C and CPython by addresses in a table, which the loader makes beside the
# code of each object. DECLARED finds the functions that are called so. The flag in BY_TABLE does
# the same for the calls that LLVM inserts by itself, such as those of memmove.
DECLARED = re.compile(r'^declare (?![^@]*@"?llvm\.).*$', re.MULTILINE)
BY_TABLE = '!llvm.module.flags = !{!0}\n!0 = !{i32 7, !"RtLibUseGOT", i32 1}'


def kernels_of_this_package():
    """Return every kernel, by its symbol."""
    from cobre_kernels.machine.kernel import KERNELS

    package = importlib.import_module(PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        importlib.import_module(module.name)
    return {name: kernel for name, kernel in KERNELS.items() if name.startswith(f"{PACKAGE}.")}


def part_of(symbol):
    """Return the part that has a kernel: "node" for ranks of one node, "nodes" for leaders."""
    return "nodes" if symbol.split(".")[1] in BETWEEN_NODES else "node"


def llvm_of(kernels):
    """Return one module of LLVM with these kernels, and the sorted names of its symbols."""
    from llvmlite import binding

    from cobre_kernels.machine.compiling import compiler

    symbols = {f"{kind}{kernel.symbol}" for kernel in kernels for kind in ("", "python:")}
    whole, *others = map(binding.parse_assembly, compiler.texts_of(kernels))
    for module in others:
        whole.link_in(module)
    for function in whole.functions:
        if not function.is_declaration and function.name not in symbols:
            function.linkage = "internal"
    for variable in whole.global_variables:
        if not variable.is_declaration:
            is_flag = variable.name == compiler.instructions.FLAG
            variable.linkage = "external" if is_flag else "internal"
    return whole, sorted(symbols)


def machine_code(text, level):
    """Return an object file: the LLVM text, optimised for a level."""
    from llvmlite import binding

    target = native_target(cpu=level, opt=3, reloc="pic", codemodel="small")
    module = binding.parse_assembly(DECLARED.sub(r"\g<0> nonlazybind", text))
    module.link_in(binding.parse_assembly(BY_TABLE))
    # LLVM optimises twice. In the first run it learns which functions never return an error; in the
    # second it removes the checks after calls of those functions. The first run has speed level 2,
    # because an older LLVM learns nothing of this at speed level 1.
    for speed_level in (2, 3):
        options = binding.create_pipeline_tuning_options(speed_level=speed_level)
        options.loop_vectorization = speed_level == 3
        builder = binding.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
    _refuse_foreign_names(str(module))
    return target.emit_object(module), str(module)


def code_of_another_package(kernel, folder):
    """Return the object file of a kernel of another package, from a folder that keeps such files.

    The folder is used for these sources of this package alone. The name of the file contains a hash
    of all sources of the other package.
    """
    package = sys.modules.get(kernel.symbol.partition(".")[0])
    sources = {pathlib.Path(kernel.function.__code__.co_filename)}
    sources.update(*map(sources_of, getattr(package, "__path__", ())))
    digest = hash_of([path for path in sources if path.exists()])
    kept = folder / f"{kernel.symbol}-{digest}-{levels()[0]}.o"
    with contextlib.suppress(OSError):
        return kept.read_bytes()
    module, _ = llvm_of([kernel])
    code, _ = machine_code(str(module), levels()[0])
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _put(kept, code)
    return code


def _own_code(level):
    """Return the object file with what a library has in addition to the kernels."""
    from llvmlite import binding

    target = native_target(reloc="pic", codemodel="small")
    binding.initialize_native_asmparser()  # for the assembly code that asks the processor
    first, *others = map(binding.parse_assembly, shared_library.texts_of(level, source_hash()))
    for module in others:
        first.link_in(module)
    return target.emit_object(first)


def _refuse_foreign_names(text):
    """Stop at a name that neither C nor CPython has, such as one of numba's runtime."""
    for name in re.findall(r'^declare [^@]*@"?([^"(]+)"?\(', text, re.MULTILINE):
        known = name.startswith("llvm.") or name in {*FROM_C, OWN} or FROM_PYTHON.fullmatch(name)
        if not known:
            bodies = re.split(r"\n(?=define )", text)[1:]
            users = [body.partition("(")[0].split("@")[1] for body in bodies if f"@{name}(" in body]
            raise SystemExit(f"kernels refer to {name}, of neither C nor CPython: {users}")


def write_text(part, folder):
    """Write the LLVM text of one part, its symbols, and the versions of the tools that made it.

    The versions are in a file, because the process that puts the parts together may be a rank or a
    launcher, which imports no numba.
    """
    gc.disable()  # numba makes little garbage, but many objects that a collection would visit
    kernels = kernels_of_this_package()
    module, symbols = llvm_of([kernels[name] for name in sorted(kernels) if part_of(name) == part])
    (folder / f"{part}.ll").write_text(str(module))
    (folder / f"{part}.json").write_text(json.dumps([symbols, versions()]))


def write_object(part, level, folder):
    """Write the object file of a part for one level, from the LLVM text of the part."""
    code, text = machine_code((folder / f"{part}.ll").read_text(), level)
    (folder / f"{level}.{part}.o").write_bytes(code)
    (folder / f"{level}.{part}.ll").write_text(text)
    if part == PARTS[0]:
        (folder / f"{level}.o").write_bytes(_own_code(level))


def versions():
    """Return the versions of all tools that make the code."""
    import llvmlite
    import numba
    import numpy
    from llvmlite import binding

    llvm = ".".join(map(str, binding.llvm_version_info))
    return {
        "numba": numba.__version__, "llvmlite": llvmlite.__version__, "LLVM": llvm,
        "NumPy": numpy.__version__, "Python": sys.version.split()[0],
    }  # fmt: skip


def write_files(wanted, parts, folder, *, keeps_text):
    """Put the parts together: write the files of each level, at first under other names."""
    told = [json.loads((parts / f"{part}.json").read_text()) for part in PARTS]
    names, made_by = [symbols for symbols, _ in told], told[0][1]
    for level in wanted:
        codes = [(parts / f"{level}.{part}.o").read_bytes() for part in PARTS]
        table = {
            "sources": source_hash(), "system": system(), "level": level, "made by": made_by,
            "objects": list(zip(map(len, codes), names, strict=True)),
        }  # fmt: skip
        _write(folder / file_name(level, OBJECTS), b"".join(codes), table)
        with contextlib.suppress(FileNotFoundError):  # there is no library without a linker
            _write(folder / file_name(level, LIBRARY), (parts / f"{level}.so").read_bytes(), table)
        if keeps_text:
            text = "".join((parts / f"{level}.{part}.ll").read_text() for part in PARTS)
            (folder / f"{level}.ll").write_text(text)


def _write(path, code, table):
    told = json.dumps({**table, "code": digest_of(code)}).encode()
    _put(path, b"".join([code, b"\n", told]))


def _put(path, content):
    """Write a file so that other processes, even of other machines, never see a part of it."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    draft.write_bytes(content)
    draft.replace(path)


def build(wanted, folder, *, keeps_text=False, tell=lambda line: None):
    """Make the files for these levels in a folder, with as many processes as there are cores.

    ``tell`` gets a line when a step begins, and a line when the step has ended.

    Raises
    ------
    RuntimeError
        If a process fails; the process itself has written the reason.
    """
    with tempfile.TemporaryDirectory() as parts, contextlib.ExitStack() as ended:
        free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        waiting, running = [(part, "") for part in PARTS], {}
        while waiting or running:
            while waiting and len(running) < max(free, 1):
                step = part, level = waiting.pop(0)
                process = subprocess.Popen(
                    [*_program(), "--part", part, *(["--levels", level] if level else []), parts],
                    env=_environment(), stdin=subprocess.DEVNULL,
                )  # fmt: skip
                ended.callback(_end, process)
                running[step] = process, time.monotonic()
                tell(f"{_words(*step)} ...")
            time.sleep(LOOK_S)
            for step, (process, began) in tuple(running.items()):
                if process.poll() is None:
                    continue
                if process.returncode != 0:
                    raise RuntimeError("the kernels could not be compiled")
                part, level = step
                del running[step]
                tell(f"{_words(*step)}: {time.monotonic() - began:.1f} s")
                waiting += [] if level else [(part, each) for each in wanted]
        parts = pathlib.Path(parts)
        linker = shared_library.linker()
        try:
            for level in wanted if linker else ():
                objects = [parts / f"{level}.{part}.o" for part in PARTS]
                shared_library.link(linker, [*objects, parts / f"{level}.o"], parts / f"{level}.so")
        except (OSError, subprocess.CalledProcessError) as error:
            tell(f"no shared library of the kernels, but object files: {error}")
        write_files(wanted, parts, pathlib.Path(folder), keeps_text=keeps_text)


def _words(part, level):
    """Describe a step of the build in words."""
    whose = "ranks of one node" if part == PARTS[0] else "leaders of nodes"
    return f"kernels for {whose}, {f'machine code for {level}' if level else 'types by numba'}"


def _end(process):
    if process.poll() is None:
        process.kill()
        process.wait()


def _program():
    # Only text, because Python ignores other entries of its path, and their repr may be no code.
    path = [str(entry) for entry in sys.path if isinstance(entry, str)]
    call = f"from {PACKAGE}.machine.build import main; main()"
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {path!r}; {call}"]


def _environment():
    """Return the environment without variables that would change what numba makes."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    # NUMBA_OPT: numba need not optimise, because LLVM optimises a whole part at the end.
    # PYTHONHASHSEED: numba iterates over sets of names, and their order depends on hashes.
    return {**own, "NUMBA_OPT": "0", "NUMBA_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m cobre_kernels.machine.build")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--levels", help="separated by commas; all of this machine's by default")
    parser.add_argument("--keep-llvm", action="store_true", help="keep the LLVM text too")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = options.levels.split(",") if options.levels else list(LEVELS.get(machine(), levels()))
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.part is None:
        build(wanted, options.folder, keeps_text=options.keep_llvm, tell=print)
    elif options.levels is None:
        write_text(options.part, options.folder)
    else:
        write_object(options.part, options.levels, options.folder)


if __name__ == "__main__":
    main()
