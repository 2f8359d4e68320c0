"""numba's cache on disk for kernels, in the folder that :mod:`cache_folder` names."""

import os
import pathlib

from cobre_kernels.machine.compiling.cache_folder import danger, kernel_folder
from cobre_kernels.machine.numba_internals import FunctionCache, rtsys


class _Locator:
    """Tells numba where the files of a kernel are."""

    def __init__(self, function):
        self._function = function
        # Kept: a process that changes its user goes on with what it has.
        self._folder = str(kernel_folder(os.environ))

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


class _LightCache(FunctionCache):
    """A cache that loads without the registries of compiling, a fifth of a rank's time to start."""

    def load_overload(self, sig, target_context):
        """Load, and let the target's registries be filled when something is compiled."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class KernelCache(_LightCache):
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
    has_place = is_ours and kernel_folder(os.environ) is not None
    if has_place:
        return KernelCache(function)
    cache = _LightCache(function)
    place, source = pathlib.Path(cache.cache_path), pathlib.Path(function.__code__.co_filename)
    if is_ours and source.parent not in place.parents and danger(place.resolve()):
        raise RuntimeError("no locator available: others may write to numba's place")
    return cache
