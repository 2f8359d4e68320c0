"""What compiles: the build, and what numba and LLVM have to know of kernels.

Only these files and ``cobre_comm/jit`` import numba; what loads machine code imports none of them.
"""
