"""What kernels stand on: records, kernels by address, atomics, copies, C functions."""
