"""The files that compile kernels: what numba and LLVM have to know about kernels, and the linker.

When they are loaded, only these files and ``cobre_comm/jit`` import numba. The files that load
machine code import none of these files.
"""
