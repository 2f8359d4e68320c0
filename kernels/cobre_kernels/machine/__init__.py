"""The base of all kernels: records, kernels by address, atomics, copies, C functions."""
