"""numba's cache on disk for kernels, in the folder that :mod:`cache_folder` names.

numba keeps LLVM's code too, to link it into other functions, and reads that at each load. A kernel
is called by its address. So its file has machine code and names alone, and loading is a third of
the work.
"""

import contextlib
import functools
import os
import pathlib
import sys
from types import SimpleNamespace

from llvmlite import binding

from cobre_kernels.machine.compiling.cache_folder import danger, kernel_folder
from cobre_kernels.machine.numba_internals import FunctionCache, _dynfunc, _nrt_python


class _Locator:
    """Tells numba where the files of a kernel are."""

    def __init__(self, function):
        self._function = function
        self._folder = str(_folder())

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls(py_func)

    def ensure_cache_path(self):
        """Do nothing, because a locator is made only where the folder is there."""

    def get_cache_path(self):
        return self._folder

    def get_source_stamp(self):
        return ""  # the name of the folder has a hash of all sources

    def get_disambiguator(self):
        package = self._function.__module__.split(".")[1:-1]
        return f"{'.'.join(package)}-{self._function.__code__.co_firstlineno}"


def _folder():
    """Return the folder of kernels, or None; looked for once while the environment is the same."""
    return _folder_of(os.geteuid() if os.name == "posix" else 0, tuple(os.environ.items()))


@functools.lru_cache(maxsize=1)
def _folder_of(user, environ):
    return kernel_folder(dict(environ))


class MachineCode:
    """The functions of one file: what a kernel needs of numba's library.

    Parameters
    ----------
    codegen : JITCPUCodegen
        Into whose engine the code is loaded.
    code : bytes
        An object file.
    """

    def __init__(self, codegen, code):
        _name_runtime()
        self.codegen, self._engine = codegen, codegen._engine
        self._engine._ee.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def get_pointer_to_function(self, name):
        """Return the address of one of its functions."""
        return self._engine.get_function_address(name)


@functools.cache
def _name_runtime():
    """Let code find the functions of numba's runtime, without the part that numba compiles."""
    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _CodeCache(FunctionCache):
    """A cache of machine code that no other function links."""

    def load_overload(self, sig, target_context):
        """Return None, because :meth:`load` has looked."""

    def load(self, signature, codegen):
        """Return what a compilation returns, as far as kernels use it; None if nothing is kept.

        Parameters
        ----------
        signature : Signature
            Of the function.
        codegen : JITCPUCodegen
            Of numba's target.
        """
        with self._guard_against_spurious_io_errors():
            found = self._cache_file.load(self._index_key(signature, codegen))
        if found is None:
            return None
        _, code, names = found
        library, names = MachineCode(codegen, code), SimpleNamespace(**names)
        call = None
        if names.llvm_cpython_wrapper_name:
            call = self._python_function(library, names)
        return SimpleNamespace(library=library, fndesc=names, entry_point=call)

    def _python_function(self, library, names):
        """Return the function for Python, as numba makes it."""
        function = self._py_func
        environment = _dynfunc.Environment(function.__globals__)
        address = library.get_pointer_to_function(names.llvm_cpython_wrapper_name)
        library.codegen.set_env(names.env_name, environment)
        module = sys.modules[function.__module__]
        kept = (library, environment)
        return _dynfunc.make_function(
            module, function.__name__, function.__doc__ or "", address, environment, kept
        )

    def _save_overload(self, sig, data):
        """Keep the object file, and the names of its functions, if there is room.

        Code that is not optimised has addresses of this process: numba would warn of each kernel.
        """
        if data.library.has_dynamic_globals or not self._impl.check_cachable(data):
            return
        library, described = data.library, data.fndesc
        wrapper = described.llvm_cpython_wrapper_name
        names = {
            "llvm_func_name": described.llvm_func_name,
            "llvm_cfunc_wrapper_name": described.llvm_cfunc_wrapper_name,
            "llvm_cpython_wrapper_name": library.get_pointer_to_function(wrapper) and wrapper,
            "env_name": described.env_name,
        }
        kept = (data.signature, library._get_compiled_object(), names)
        with contextlib.suppress(OSError):  # the disk is full, or the folder was removed
            self._impl.locator.ensure_cache_path()
            self._cache_file.save(self._index_key(sig, data.codegen), kept)


class KernelCache(_CodeCache):
    """The cache of one kernel, in our folder."""

    class _impl_class(FunctionCache._impl_class):  # numba's name
        _locator_classes = (_Locator,)


def cache_of(function):
    """Return the cache of a kernel; of another package's kernel, where numba would keep it.

    Where we have no folder, numba's own place serves, unless others may write there. What lies
    beside the sources is as safe as they are.

    Raises
    ------
    RuntimeError
        If there is no place for one.
    """
    is_ours = function.__module__.partition(".")[0] == __name__.partition(".")[0]
    has_place = is_ours and _folder() is not None
    if has_place:
        return KernelCache(function)
    cache = _CodeCache(function)
    place, source = pathlib.Path(cache.cache_path), pathlib.Path(function.__code__.co_filename)
    if is_ours and source.parent not in place.parents and danger(place.resolve()):
        raise RuntimeError("no locator available: others may write to numba's place")
    return cache
