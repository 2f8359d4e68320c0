"""numba's private interfaces: the names that we use, why, and with which versions of numba.

numba promises that ``numba``, ``numba.types`` and ``numba.extending`` remain. All other names of
numba that we need are in this file, and other files import them from here; ``make check`` tests
that. If this numba is outside the bounds of the versions that were tried, or lacks a name in
:data:`USED`, the import of this file raises an error.

To support another numba: widen :data:`BEYOND`, run ``pytest tests/jit tests/kernels`` and
``cobre-comm check`` with that numba, and add its version to :data:`TRIED`. This file cannot look
for two names, so tests try them: ``_numba_type_`` (the type of an object) and
``__numba_parfor_gufunc`` (the body of a ``prange``).
"""

import numba

TRIED = ("0.61.0", "0.62.1", "0.63.1", "0.64.0", "0.65.1", "0.66.0", "0.67.0", "0.68.1")
OLDEST, BEYOND = (0, 61), (0, 69)  # the same bounds as in pyproject.toml


def refusal(problem):
    """Return the error about an unsupported numba; the text says how to get a supported numba."""
    oldest, beyond = (".".join(map(str, version)) for version in (OLDEST, BEYOND))
    return ImportError(
        f"numba {numba.__version__} does not fit this version of cobre_comm: {problem}. cobre_comm "
        f"uses private interfaces of numba, which were tried with {TRIED[0]} to {TRIED[-1]}; "
        f"install one of these: pip install 'numba>={oldest},<{beyond}'"
    )


if not OLDEST <= numba.version_info.short < BEYOND:
    raise refusal("it is none of those that were tried")

try:
    from numba import _dynfunc
    from numba.core import cgutils, inline_closurecall, sigutils
    from numba.core.caching import Cache, IndexDataCacheFile
    from numba.core.callconv import CPUCallConv
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_lock import global_compiler_lock  # (testing/ranks/compile_once.py)
    from numba.core.compiler_machinery import PassManager
    from numba.core.compiler_machinery import register_pass  # a pass of our own
    from numba.core.cpu import CPUContext
    from numba.core.dispatcher import Dispatcher
    from numba.core.funcdesc import FunctionDescriptor
    from numba.core.imputils import impl_ret_borrowed  # a field of a region (jit/fields.py)
    from numba.core.imputils import lower_constant  # a communicator in a global (jit/values.py)
    from numba.core.ir_utils import get_definition, guard  # routines in reduce (compiler.py)
    from numba.core.pythonapi import PythonAPI
    from numba.core.runtime import _nrt_python
    from numba.core.typed_passes import NativeLowering
    from numba.core.typing.context import Context
    from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, Signature
    from numba.core.typing.templates import infer_global, signature  # indices (record_types.py)
    from numba.core.typing.templates import make_intrinsic_template  # instructions (compiler.py)
    from numba.np.numpy_support import as_dtype  # the dtype of an argument (jit/arguments.py)
except ImportError as error:
    raise refusal(error) from error

# Of each class or module, the names in it that we use; a comment above says the reason. If we
# replace a method, its parameters follow its name.
USED = {
    # A routine stays LLVM's text until another function links it (pipeline.py); the build links and
    # optimises a kernel once, as a whole (compiler.py).
    JITCodeLibrary: (
        "finalize(self) _get_module_for_linking(self) _raise_if_finalized _ensure_finalized "
        "_finalized _final_module _linking_libraries _shared_module _reload_init _codegen "
        "enable_object_caching"
    ),
    # Routines have a pipeline of their own (pipeline.py).
    CompilerBase: "define_pipelines(self) state",
    # The pipeline of routines has numba's passes.
    DefaultPassBuilder: "define_nopython_pipeline",
    # The pipeline of routines is an object of this class.
    PassManager: "passes add_pass finalize",
    # A routine is lowered into a library of its own kind.
    NativeLowering: "run_pass(self,state)",
    # Callers find a routine, which has no machine code, by a key.
    _dynfunc: "make_function",
    # A routine's Python objects are known before its first caller runs (pipeline.py).
    JITCPUCodegen: "_add_module set_env _engine",
    # The function of a reduce may be a routine (compiler.py).
    inline_closurecall: "check_reduce_func(func_ir,func_var)",
    # To register the key of a routine; to lower methods and attributes of ours (cobre_comm.jit).
    CPUContext: (
        "insert_user_function add_dynamic_addr get_getattr get_function compile_internal "
        "insert_const_string call_conv environment nrt"
    ),
    # To register the key of a routine; the build calls a kernel by its name (compiler.py).
    FunctionDescriptor: "lookup_module llvm_func_name env_name",
    # The build compiles kernels; a routine is not compiled anew for a constant (compiler.py); of
    # ranks that need the same function, one compiles it (testing/ranks/compile_once.py).
    Dispatcher: (
        "compile(self,sig) overloads get_call_template(self,args,kws) "
        "get_compile_result(self,sig) _cache"
    ),
    # No rank runs what another one has saved for other types (checked_cache.py).
    IndexDataCacheFile: "load(self,key) _load_index(self)",
    # A rank looks whether another one has compiled a function (testing/ranks/compile_once.py).
    Cache: "_index_key(self,sig,codegen) _cache_file cache_path",
    # The types for which a saved function was compiled (checked_cache.py).
    Signature: "args return_type",
    # The types for which numba looks in its cache (checked_cache.py).
    sigutils: "normalize_signature(sig)",
    # To write LLVM instructions (record_types.py, instructions.py, cobre_comm.jit).
    cgutils: (
        "alloca_once alloca_once_value create_struct_proxy early_exit_if early_exit_if_null "
        "false_bit true_bit get_null_value get_or_insert_function if_unlikely intp_t is_not_null"
    ),
    # A method that fails gives its reference count back (jit/holding.py).
    CPUCallConv: (
        "get_function_type call_function decorate_function decode_arguments return_value "
        "check_try_status return_status_propagate"
    ),
    # A value holds the Python object that it stands for (jit/values.py).
    _nrt_python: "meminfo_new",
    # No other version loads what was compiled (jit/types.py).
    _dynfunc.Environment: "consts",
    # From a Python object to a value and back; an exception is explained (jit/fields.py).
    PythonAPI: (
        "nrt_meminfo_new_from_pyobject object_getattr_string long_as_longlong err_set_string "
        "err_fetch err_restore gil_ensure gil_release incref decref"
    ),
    # Records have attributes; unknown ones are refused with a sentence (jit/attributes.py).
    AttributeTemplate: "resolve generic_resolve context",
    # Rows and tables have indices; check_signals has a type.
    AbstractTemplate: "context",
    # To find methods of a borrowed communicator; to refuse some in a prange (jit/attributes.py).
    Context: "_get_attribute_templates callstack",
}


def missing():
    """Return the names of the table that this numba lacks."""
    return [
        f"{owner.__name__}.{each}"
        for owner, names in USED.items()
        for each in names.split()
        if not _has(owner, each)
    ]


def _has(owner, each):
    """Tell whether an owner has a name, with these parameters, or sets it in its constructor."""
    name, _, parameters = each.rstrip(")").partition("(")
    found = getattr(owner, name, None)
    if parameters:
        code = getattr(found, "__code__", None)
        return code is not None and ",".join(code.co_varnames[: code.co_argcount]) == parameters
    if found is not None or hasattr(owner, name):
        return True
    bases = getattr(owner, "__mro__", ())
    made = (vars(base).get(begin) for base in bases for begin in ("__init__", "_init"))
    return any(name in each.__code__.co_names for each in made if hasattr(each, "__code__"))


if _lacking := missing():
    raise refusal(f"it has no {', '.join(_lacking)}")
