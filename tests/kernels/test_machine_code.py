"""The file of machine code: what it holds, what it refers to, and which files are refused."""

import ctypes
import errno
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import cobre_kernels
import numpy as np
import pytest
from cobre_kernels.machine import build, code, made, target
from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED
from cobre_kernels.machine.compiling import shared_library
from llvmlite import binding

import cobre_comm
from tests.command import python

pytestmark = pytest.mark.skipif(NOTHING_IS_COMPILED, reason="NUMBA_DISABLE_JIT=1")
needs_library = pytest.mark.skipif(
    shared_library.linker() is None,
    reason="this machine has no linker, so kernels are object files",
)
elf = pytest.mark.skipif(sys.platform != "linux", reason="object files of ELF")
# a symbol of ELF: name, kind and binding, unused, section, value, size
SYMBOL = struct.Struct("<IBBHQQ")
# Maps a wall of 8 GiB, and leaves one hole above the wall, too small for the code of one object. If
# the loader put each part of an object where there is room, parts would lie on both sides.
FAR = """
import ctypes, mmap
from cobre_kernels.machine import code
import llvmlite.binding

c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def mapped(size):
    return c.mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)

wall, filled = mapped(8 << 30), []
while (block := mapped(64 << 10)) > wall:
    filled.append(block)
c.munmap(filled[0], 32 << 10)
print(0 < code.library().address_of("cobre_kernels.local.barrier_body") < wall)
"""
TABLE_OF_OFFSETS = "_GLOBAL_OFFSET_TABLE_"  # the loader makes this symbol


def symbols_of(object_file):
    """Return the names that an object file defines for others, and those that it needs."""
    sections = {each.name(): each.data() for each in object_file.sections()}
    shown, asked = set(), set()
    for name, kind, _, section, *_ in SYMBOL.iter_unpack(sections[b".symtab"]):
        if kind >> 4:  # the binding is 0 for local names
            text = sections[b".strtab"][name:].partition(b"\0")[0].decode()
            (shown if section else asked).add(text)
    return shown, asked - {TABLE_OF_OFFSETS}


def test_a_program_of_the_build_imports_as_here_though_a_path_is_no_text(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, pathlib.Path("lib"), np.str_("numpy's")])
    *command, program = build._program()
    shown = f"{program.partition('; from')[0]}; print(sys.path[-1])"
    assert python(*command[1:], shown).stdout == "numpy's\n"


def file_of_objects():
    """Return the file with object files; it lies beside the library if there is a linker."""
    return made.file_of_this_machine().with_suffix(target.OBJECTS)


@pytest.fixture(scope="module")
def objects():
    binding.initialize_native_target()
    codes = code.read(file_of_objects())
    return [symbols_of(binding.ObjectFileRef.from_data(each)) for each in codes]


@pytest.fixture
def table_and_codes():
    codes, _, table = made.file_of_this_machine().read_bytes().rpartition(b"\n")
    return json.loads(table), codes


@elf
def test_machine_code_refers_to_nothing_but_c_and_python(objects):
    for _, asked in objects:
        unknown = {
            n for n in asked - {*build.FROM_C, build.OWN} if not build.FROM_PYTHON.fullmatch(n)
        }
        assert not unknown


@elf
def test_parts_of_an_object_lie_beside_each_other(tmp_path):
    shutil.copy(file_of_objects(), tmp_path)
    assert python("-c", FAR, env={**os.environ, made.CHOSEN: str(tmp_path)}).stdout == "True\n"


@elf
def test_each_kernel_is_there_for_compiled_code_and_for_python(objects):
    shown = [names for names, _ in objects]
    for name in build.kernels_of_this_package():
        part = build.PARTS.index(build.part_of(name))
        assert {name, f"python:{name}"} <= shown[part]


def test_of_threads_that_need_kernels_at_once_one_loads_them(monkeypatch):
    """If each thread loaded kernels, all sets but one would be freed, while callers use them."""
    loaded, both = [], threading.Barrier(2)

    class Engine:
        def __init__(self, *file):
            loaded.append(self)
            time.sleep(0.05)  # in this time the other thread asks for kernels too

    def load():
        both.wait()
        return code.library()

    monkeypatch.setattr(code, "LoadedCode", Engine)
    monkeypatch.setattr(code, "MappedCode", Engine)
    monkeypatch.setattr(code, "_LIBRARIES", {})
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(load) for _ in range(2)]
    assert [each.result() for each in found] == loaded * 2


def test_a_signal_handler_may_need_kernels_while_its_thread_loads_them(monkeypatch):
    class Engine:
        def __init__(self, *file):
            if not handled:
                handled.append(None)
                handled[0] = code.library()

    handled = []
    monkeypatch.setattr(code, "LoadedCode", Engine)
    monkeypatch.setattr(code, "MappedCode", Engine)
    monkeypatch.setattr(code, "_LIBRARIES", {})
    assert code.library() is handled[0] is code.library()


def test_the_table_names_each_kernel(table_and_codes):
    names = {name for _, symbols in table_and_codes[0]["objects"] for name in symbols}
    kernels = build.kernels_of_this_package()
    assert names == {f"{kind}{name}" for name in kernels for kind in ("", "python:")}


def found(folder, content):
    path = folder / made.file_of_this_machine().name
    path.write_bytes(content)
    return made.fitting(folder) == path


def test_a_copy_of_the_file_is_taken(tmp_path):
    assert found(tmp_path, made.file_of_this_machine().read_bytes())
    assert made.fitting(tmp_path / "absent") is None


@pytest.mark.parametrize(
    "changed",
    [{"sources": "0" * 16}, {"system": "x86_64-plan9"}, {"level": "x86-64-v9"}, {"code": "0" * 64}],
)
def test_code_of_other_sources_or_for_another_machine_is_not_taken(
    tmp_path, table_and_codes, changed
):
    table, codes = table_and_codes
    assert not found(tmp_path, codes + b"\n" + json.dumps(table | changed).encode())


@pytest.mark.parametrize("content", [b"", b"\n", b"\n7", b"\n[]", b"\n{}", b"\x7fELF\xff\n", b"x"])
def test_garbage_is_not_taken(tmp_path, content):
    assert not found(tmp_path, content)


@pytest.mark.parametrize("bytes_kept", [100, -1])
def test_a_file_that_ends_early_is_not_taken(tmp_path, bytes_kept):
    assert not found(tmp_path, made.file_of_this_machine().read_bytes()[:bytes_kept])


def test_a_flipped_bit_is_noticed(tmp_path, table_and_codes):
    table, codes = table_and_codes
    flipped = codes[:5000] + bytes([codes[5000] ^ 4]) + codes[5001:]
    assert not found(tmp_path, flipped + b"\n" + json.dumps(table).encode())


def test_the_level_is_what_the_processor_tells_this_process(monkeypatch):
    """An emulated processor has fewer instructions than /proc/cpuinfo lists of the real machine."""
    known = target.LEVELS[target.machine()]
    monkeypatch.setattr(
        target, "_flags", lambda: {flag for needed in known.values() for flag in needed}
    )
    monkeypatch.setattr(target, "_flags_of_llvm", set)
    assert target.levels() == tuple(name for name, needed in known.items() if not needed)


REPLACED = """
import sys
sys.path.insert(0, sys.argv[1])
import cobre_comm
from cobre_kernels.machine import made
with open(f"{sys.argv[1]}/cobre_kernels/local.py", "a") as source:
    source.write("# of another version")
made.SHIPPED = made.pathlib.Path("/nowhere")
cobre_comm.LocalBackend().barrier()
"""


def test_kernels_that_were_replaced_under_a_process_are_refused(tmp_path):
    for package in (cobre_comm, cobre_kernels):
        folder = pathlib.Path(package.__file__).parent
        shutil.copytree(
            folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__")
        )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = python("-P", "-c", REPLACED, tmp_path, code=1, env=environment)
    assert f"cobre_kernels in {tmp_path}/cobre_kernels has been replaced since" in done.stderr


NO_EXECUTABLE = """
import ctypes
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, since Linux 6.3
    raise SystemExit(3)
import cobre_comm
cobre_comm.LocalBackend().barrier()
"""


@pytest.mark.parametrize("kind", [target.LIBRARY, target.OBJECTS])
def test_where_no_memory_may_become_executable_a_library_serves(tmp_path, kind):
    file = made.file_of_this_machine().with_suffix(kind)
    if not file.exists():
        pytest.skip("this machine has no linker")
    shutil.copy(file, tmp_path)
    done = python("-c", NO_EXECUTABLE, code=None, env={**os.environ, made.CHOSEN: str(tmp_path)})
    if done.returncode == 3:
        pytest.skip("this Linux has no PR_SET_MDWE")
    assert done.returncode == (kind == target.OBJECTS), done.stderr
    refused = "this process may not make memory executable (Permission denied)"
    assert (refused in done.stderr) == (kind == target.OBJECTS)


WITHOUT_LLVM = """
import sys
from cobre_comm import LocalBackend
comm = LocalBackend()
comm.barrier()
print(comm.topology().kernels, "llvmlite" in sys.modules)
"""


@needs_library
def test_a_process_that_calls_from_python_maps_the_library_and_loads_no_llvm():
    assert python("-c", WITHOUT_LLVM).stdout == f"{target.levels()[0]}, a shared library False\n"


@needs_library
@pytest.mark.parametrize("refusal", [OSError("noexec"), code.UnfitCode("of a better processor")])
def test_a_library_that_cannot_be_mapped_leaves_the_object_files(monkeypatch, refusal):
    def refuse(path):
        raise refusal

    monkeypatch.setattr(code, "MappedCode", refuse)
    loaded = code._code_of_this_package()
    assert loaded.path == file_of_objects()
    assert loaded.address_of("cobre_kernels.local.barrier_body")


@needs_library
def test_a_library_of_other_sources_is_not_taken(monkeypatch):
    file = made.file_of_this_machine()
    assert code.MappedCode(file).address_of("cobre_kernels.local.barrier_body")
    monkeypatch.setattr(code.version, "source_hash", lambda: "0" * 16)
    with pytest.raises(code.UnfitCode):
        code.MappedCode(file)


def test_a_library_asks_the_processor_as_llvm_does():
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    for level in target.LEVELS[target.machine()]:
        text = shared_library.texts_of(level, "none")[1]
        machine = binding.Target.from_default_triple().create_target_machine()
        engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
        engine.finalize_object()
        runs_here = ctypes.CFUNCTYPE(ctypes.c_int)(engine.get_function_address(code.RUNS_HERE))
        assert runs_here() == (level in target.levels()), level


def test_a_machine_may_have_no_linker(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(shared_library.importlib.util, "find_spec", lambda name: None)
    assert shared_library.linker() is None


def test_a_linker_that_fails_raises(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        shared_library.link([sys.executable, "-c", "raise SystemExit(1)"], [], tmp_path / "none.so")


@pytest.mark.parametrize("refused", ["the file", "the lock"])
def test_where_no_file_can_be_locked_each_process_makes_its_own(tmp_path, monkeypatch, refused):
    made_there = []

    class Builder:
        @staticmethod
        def build(levels, folder):
            made_there.append(folder)
            shutil.copy(made.file_of_this_machine(), folder)

    def refuse(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(made, "builder", lambda: Builder)
    monkeypatch.setattr(made.fcntl, "flock", refuse)
    if refused == "the file":
        (tmp_path / "lock").mkdir()  # so that this lock cannot be written
    assert made._made_in(tmp_path) == tmp_path / made.file_of_this_machine().name
    assert made_there == [tmp_path]


def test_without_proc_the_same_levels_are_found(monkeypatch):
    """If fewer levels were found, a job without /proc would compile for the plainest processor."""
    # `levels` asks this module if it is loaded
    monkeypatch.delitem(sys.modules, "llvmlite.binding")
    known = target.levels()

    def refuse(path, *words, **named):
        raise FileNotFoundError(path)

    monkeypatch.setattr(target.pathlib.Path, "open", refuse)
    assert target.levels() == known
