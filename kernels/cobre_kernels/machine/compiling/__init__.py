"""The files that compile kernels: what numba and LLVM have to know of kernels, and the linker.

Only these files and ``cobre_comm/jit`` import numba as they are loaded. The files that load machine
code import none of them.
"""
