"""How routines are compiled: by numba's pipeline, but without machine code.

numba optimises every function and turns it into machine code of its own, and does this again with
the copy of the function in each caller. A routine needs no machine code of its own, because it has
no address. So here a routine stays LLVM text until a kernel, or a user's function, links it. This
saves two thirds of the compilation of the example, which is made of routines.
"""

from llvmlite import binding
from numba import TypingError

from cobre_kernels.machine.compiling.numba_internals import (
    CompilerBase,
    DefaultPassBuilder,
    JITCodeLibrary,
    NativeLowering,
    PassManager,
    _dynfunc,
    register_pass,
)

UNRESOLVED = ".numba.unresolved$"  # begins a symbol, in a recursion through several functions
_symbols = set()  # symbols of the routines that this process has compiled


class RoutineLibrary(JITCodeLibrary):
    """The LLVM module of a routine, which is turned into machine code only as part of a caller."""

    def finalize(self):
        """Leave the module as it is until another function links it."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalized = True

    def _get_module_for_linking(self):
        """Return the routine with all that it calls, which numba links into a user's function."""
        self._ensure_finalized()
        self._module()
        self._link_routines()
        self._linking_libraries = []
        self._refuse_recursion()
        return self._shared_module

    def _refuse_recursion(self):
        """Refuse a recursion through several functions, because it needs a function's address."""
        has_address = self._codegen._engine.is_symbol_defined
        for variable in self._final_module.global_variables:
            symbol = variable.name.removeprefix(UNRESOLVED)
            if symbol != variable.name and (symbol in _symbols or not has_address(symbol)):
                raise TypingError(
                    "a routine may call itself only directly and with arguments of the same types; "
                    f"{self.name}, or a routine that it calls, does otherwise: decorate the "
                    "functions of the recursion with numba.njit"
                )

    def _module(self):
        """Return the routine alone, so that it can be linked."""
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == binding.Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = self._final_module
        return self._shared_module

    def _link_routines(self):
        """Link every library below this one, once, and after all libraries that call it.

        LLVM links only those functions of a module that are called by code which is linked already.
        """
        order, seen = [], set()

        def visit(library):
            if library not in seen:
                seen.add(library)
                if isinstance(library, RoutineLibrary):
                    for below in library._linking_libraries:
                        visit(below)
                order.append(library)

        for library in self._linking_libraries:
            visit(library)
        for library in reversed(order):
            is_own = isinstance(library, RoutineLibrary)
            module = library._module() if is_own else library._get_module_for_linking()
            self._final_module.link_in(module, preserve=True)


@register_pass(mutates_CFG=True, analysis_only=False)
class RoutineLowering(NativeLowering):
    """Lower into a :class:`RoutineLibrary`."""

    _name = "routine_lowering"

    def run_pass(self, state):
        """Register the routine, so that callers can use it, but make no machine code."""
        if state.library is None:
            name = state.func_id.func_qualname
            state.library = RoutineLibrary(state.targetctx.codegen(), name)
            state.library.enable_object_caching()
        state.flags.no_compile = True
        # Python gets the wrapper of a generator when a caller returns the generator.
        state.flags.no_cpython_wrapper = not state.func_id.is_generator
        super().run_pass(state)
        lowered = state["cr"]
        _symbols.add(lowered.fndesc.llvm_func_name)
        name = lowered.fndesc.qualname
        key = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, "a routine", 0, lowered.env, (state.library,)
        )
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        _give_environment(state.targetctx.codegen(), lowered)
        return True


def _give_environment(codegen, lowered):
    """Give the code of callers the Python objects of a routine, such as the objects that it prints.

    Code finds these objects by an address in a global variable. The variable is in a module of its
    own here, because the module of the routine becomes machine code only as part of a caller.
    """
    name = lowered.fndesc.env_name
    codegen._add_module(binding.parse_assembly(f'@"{name}" = common global i64 0'))
    codegen.set_env(name, lowered.env)


class RoutineCompiler(CompilerBase):
    """The compiler of routines."""

    def define_pipelines(self):
        """Return numba's passes, with our own lowering."""
        usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline = PassManager(RoutineLowering._name)
        for step, description in usual.passes:
            used = RoutineLowering if step is NativeLowering else step
            pipeline.add_pass(used, description)
        pipeline.finalize()
        return [pipeline]
