"""A routine: a function that kernels link, compiled once however many constants its callers pass.

To numba a constant argument has a type of its own (``Literal[int](0)``), and a callee is compiled
anew for every pattern of them. That was a third of all compilation here, for code that LLVM inlines
and folds in any case. No routine is called from Python or C, so numba leaves out the wrappers for
that; tests call its ``py_func``.
"""

from numba import njit, types

from cobre_kernels.machine.compiling.pipeline import RoutineCompiler

UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def routine(function=None, **options):
    """Compile as ``numba.njit`` does, but take a constant as an argument like any other."""
    if function is None:
        return lambda function: routine(function, **options)
    dispatcher = njit(**UNWRAPPED, pipeline_class=RoutineCompiler, **options)(function)
    if dispatcher is not function:  # with NUMBA_DISABLE_JIT=1 it is
        find = dispatcher.get_call_template

        def find_general(args, kws):
            general = {name: types.unliteral(typ) for name, typ in kws.items()}
            return find(tuple(types.unliteral(typ) for typ in args), general)

        dispatcher.get_call_template = find_general
    return dispatcher
