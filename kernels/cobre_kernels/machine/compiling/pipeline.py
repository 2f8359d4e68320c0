"""How kernels and routines are compiled: by numba's pipeline, without the passes they cannot need.

numba turns every function into machine code of its own and optimises it, before the functions that
call it do the same with their copies. A routine has no address: here it remains LLVM's text until
a kernel, or a user's function, links it. A kernel then links each routine below it once, and the
whole is optimised once.
"""

from llvmlite import binding

from cobre_kernels.machine.numba_internals import (
    UNUSED_PASSES,
    CompilerBase,
    DefaultPassBuilder,
    JITCodeLibrary,
    NativeLowering,
    PassManager,
    _dynfunc,
    register_pass,
)


class _Library(JITCodeLibrary):
    """The module of one function."""

    def _optimize_functions(self, ll_module):
        """Run the passes on functions that have a body, with one manager for all of them."""
        if not hasattr(self._codegen, "_pass_builder"):  # before 0.62, numba itself makes but one
            super()._optimize_functions(ll_module)
            return
        ll_module.data_layout = self._codegen._data_layout
        manager, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                manager.run(function, builder)

    def link_routines(self):
        """Link every library below this one, once, and after all that call it.

        LLVM takes only the functions of a module that linked code calls already.
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
            module = library.module() if is_own else library._get_module_for_linking()
            self._final_module.link_in(module, preserve=True)


class RoutineLibrary(_Library):
    """The module of a routine; it is never turned into machine code."""

    def finalize(self):
        """Leave the module as it is until a kernel links it."""
        self._raise_if_finalized()
        self._finalized = True

    def module(self):
        """Return the routine alone, to be linked."""
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == binding.Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = self._final_module
        return self._shared_module

    def _get_module_for_linking(self):
        """Return the routine with all that it calls: numba links this into a user's function."""
        self._ensure_finalized()
        self.module()
        self.link_routines()
        self._linking_libraries = []
        return self._shared_module


class KernelLibrary(_Library):
    """The module of a kernel, with the routines that it is made of."""

    def finalize(self):
        """Link and optimise."""
        self._codegen._check_llvm_bugs()
        self._raise_if_finalized()
        self.link_routines()
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()


class _Lowering(NativeLowering):
    def run_pass(self, state):
        if state.library is None:
            name = state.func_id.func_qualname
            state.library = self.library_class(state.targetctx.codegen(), name)
            state.library.enable_object_caching()
        return super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(_Lowering):
    """Lower into a :class:`KernelLibrary`."""

    _name = "kernel_lowering"
    library_class = KernelLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class RoutineLowering(_Lowering):
    """Lower into a :class:`RoutineLibrary`."""

    _name = "routine_lowering"
    library_class = RoutineLibrary

    def run_pass(self, state):
        """Register the routine, for callers, without machine code."""
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        name = lowered.fndesc.qualname
        key = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), name, "a routine", 0, lowered.env, (state.library,)
        )
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


def _pipeline(state, lowering):
    usual = DefaultPassBuilder.define_nopython_pipeline(state)
    pipeline = PassManager(lowering._name)
    for step, description in usual.passes:
        if step not in UNUSED_PASSES:
            pipeline.add_pass(lowering if step is NativeLowering else step, description)
    pipeline.finalize()
    return [pipeline]


class KernelCompiler(CompilerBase):
    """The compiler of kernels, and of the fast path's methods."""

    def define_pipelines(self):
        """Return the passes."""
        return _pipeline(self.state, KernelLowering)


class RoutineCompiler(CompilerBase):
    """The compiler of routines."""

    def define_pipelines(self):
        """Return the passes."""
        return _pipeline(self.state, RoutineLowering)
