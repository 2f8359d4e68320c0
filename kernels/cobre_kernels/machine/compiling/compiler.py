"""Makes routines, instructions and C functions known to numba, and the LLVM text of kernels.

For numba a constant argument has a type of its own (``Literal[int](0)``), so numba compiles a
callee anew for every pattern of constants. Here this took a third of all compilation time, although
LLVM inlines the callee and folds constants in any case. So a routine treats a constant like any
other argument.
"""

import functools
import inspect

from llvmlite import ir
from numba import njit, types

from cobre_kernels.machine.compiled import Routine
from cobre_kernels.machine.compiling import instructions
from cobre_kernels.machine.compiling.numba_internals import (
    JITCodeLibrary,
    JITCPUCodegen,
    get_definition,
    guard,
    inline_closurecall,
    make_intrinsic_template,
)
from cobre_kernels.machine.compiling.own_names import copy_of, own_named
from cobre_kernels.machine.compiling.pipeline import RoutineCompiler
from cobre_kernels.machine.compiling.record_types import RecordType

RAISES = "a_kernel_that_can_raise"

# Each kernel and each routine has these options, not the options of its caller. error_model:
# kernels raise nothing. fastmath: fused or reordered operations would give other bits. numba's
# wrappers are left out, because nobody calls them.
ARITHMETIC = {"error_model": "numpy", "fastmath": False}
OPTIONS = {**ARITHMETIC, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def dispatcher_of(routine):
    """Return a routine in the form of a function that numba has compiled."""
    dispatcher = njit(pipeline_class=RoutineCompiler, **{**OPTIONS, **routine.options})(
        own_named(copy_of(routine.py_func))
    )
    find = dispatcher.get_call_template

    def find_general(args, kws):
        general = {name: types.unliteral(typ) for name, typ in kws.items()}
        return find(tuple(types.unliteral(typ) for typ in args), general)

    dispatcher.get_call_template = find_general

    @functools.cache
    def with_address():
        return njit(**{**ARITHMETIC, **routine.options})(dispatcher.py_func)

    # If a routine is used as a value, for example chosen by an `if`, it needs machine code.
    dispatcher.get_compile_result = lambda sig: with_address().get_compile_result(sig)
    return dispatcher


@functools.cache
def let_reduce_take_routines():
    """Let ``functools.reduce`` in compiled code take a routine, whose source numba then inlines."""
    usual = inline_closurecall.check_reduce_func

    def check_reduce_func(func_ir, func_var):
        found = guard(get_definition, func_ir, func_var)
        value = getattr(found, "value", None)
        return value.py_func if isinstance(value, Routine) else usual(func_ir, func_var)

    inline_closurecall.check_reduce_func = check_reduce_func


def type_of_routine(routine):
    """Return the type of a routine.

    The type gets a name of ours. numba's name contains an address, which differs from build to
    build. If another routine took this routine as an argument, the address would be part of the
    name of the other routine's machine code.
    """
    kind = routine.dispatcher._numba_type_
    kind.name = f"{routine.__module__}.{routine.dispatcher.py_func.__qualname__}"
    return kind


def type_of_instruction(instruction):
    """Return the type of an instruction; for numba it is an intrinsic."""
    write = instructions.WRITERS[instruction.__name__]

    def typing(typingctx, *arguments):
        return write(instruction.detail, *arguments)

    # numba reads the parameters of ``typing``, and MPI's functions have different numbers of them.
    names = list(inspect.signature(instruction.python).parameters)
    if "arguments" in names:
        names[1:] = [f"argument_{number}" for number in range(len(instruction.detail) - 1)]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ["typingctx", *names]]
    typing.__signature__ = inspect.Signature(parameters)
    return types.Function(make_intrinsic_template(instruction, typing, instruction.__name__))


def type_of_c_function(function):
    """Return the type of a function of C."""
    kinds = [instructions.C_KINDS[kind] for kind in function.arguments]
    return types.ExternalFunction(function.name, instructions.C_KINDS[function.result](*kinds))


def texts_of(kernels):
    """Return the LLVM text of kernels and of all that they call.

    numba turns each function into machine code of its own, for callers in Python. The build links
    and optimises a kernel once, as a whole, and would throw that machine code away, although making
    it is half of the work. So while this function runs, numba leaves each function as LLVM text.
    """
    texts, seen = [], set()

    def leave_as_text(library):
        library._finalized = True

    def add(library):
        if library not in seen:
            seen.add(library)
            texts.append(str(library._final_module))
            for below in sorted(library._linking_libraries, key=lambda one: one.name):  # a set
                add(below)

    usual = JITCodeLibrary.finalize, JITCPUCodegen.set_env
    JITCodeLibrary.finalize = leave_as_text
    JITCPUCodegen.set_env = lambda codegen, name, environment: None
    try:
        for kernel in kernels:
            compiled, words = _compiled(kernel)
            add(compiled.library)
            texts.append(_for_c(kernel, compiled.fndesc.llvm_func_name, words))
    finally:
        JITCodeLibrary.finalize, JITCPUCodegen.set_env = usual
    return texts


def _compiled(kernel):
    """Return the function that numba makes of a kernel, and the number of its words."""
    arguments = [RecordType(kernel.record.name)]
    words = 1
    if kernel.call_type is not None:
        words += len(kernel.call_type._fields)
        arguments.append(types.NamedUniTuple(types.int64, words - 1, kernel.call_type))
    dispatcher = njit(**OPTIONS)(kernel.function)
    dispatcher.compile(types.int64(*arguments))
    compiled = dispatcher.overloads[tuple(arguments)]
    return compiled, words


def _for_c(kernel, name, words):
    """Return the text of the function of C with a kernel's symbol.

    The function of C gives numba's function a place for its result. If numba's function could
    raise, the function of C calls a function that does not exist. LLVM removes this call if it can
    prove that nothing is raised. If the call remains, the build refuses the kernel.
    """
    module = ir.Module()
    i32, i64, pointer = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
    inner_type = ir.FunctionType(i32, [i64.as_pointer(), pointer.as_pointer(), *[i64] * words])
    inner = ir.Function(module, inner_type, name)
    outer = ir.Function(module, ir.FunctionType(i64, [i64] * words), kernel.symbol)
    builder = ir.IRBuilder(outer.append_basic_block())
    result, raised = builder.alloca(i64), builder.alloca(pointer)
    status = builder.call(inner, [result, raised, *outer.args])
    with builder.if_then(builder.icmp_unsigned("!=", status, ir.Constant(i32, 0)), likely=False):
        builder.call(ir.Function(module, ir.FunctionType(ir.VoidType(), []), RAISES), [])
    builder.ret(builder.load(result))
    _for_python(module, outer, words)
    return str(module)


def _for_python(module, kernel, words):
    """Add the function that Python calls (METH_FASTCALL): integers in, an integer out."""
    i32, i64 = ir.IntType(32), ir.IntType(64)
    is_raised = ir.Function(module, ir.FunctionType(i64, []), "PyErr_Occurred")
    integer_of = ir.Function(module, ir.FunctionType(i64, [i64]), "PyLong_AsLongLong")
    new_integer = ir.Function(module, ir.FunctionType(i64, [i64]), "PyLong_FromLongLong")
    refuse = ir.Function(module, ir.FunctionType(i32, []), "PyErr_BadArgument")
    function = ir.Function(
        module, ir.FunctionType(i64, [i64, i64.as_pointer(), i64]), f"python:{kernel.name}"
    )
    builder = ir.IRBuilder(function.append_basic_block())
    count_differs = builder.icmp_unsigned("!=", function.args[2], ir.Constant(i64, words))
    with builder.if_then(count_differs, likely=False):
        builder.call(refuse, [])
        builder.ret(ir.Constant(i64, 0))
    values = []
    for number in range(words):
        place = builder.gep(function.args[1], [ir.Constant(i64, number)])
        value = builder.call(integer_of, [builder.load(place)])
        with builder.if_then(builder.icmp_signed("==", value, ir.Constant(i64, -1)), likely=False):
            occurred = builder.call(is_raised, [])
            failed = builder.icmp_unsigned("!=", occurred, ir.Constant(i64, 0))
            with builder.if_then(failed, likely=False):
                builder.ret(ir.Constant(i64, 0))
        values.append(value)
    builder.ret(builder.call(new_integer, [builder.call(kernel, values)]))
