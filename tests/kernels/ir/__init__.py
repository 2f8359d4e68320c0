"""Reads the optimised LLVM IR of a kernel and follows every address in it to each access.

``compile`` makes the IR, ``text`` cuts it, ``values`` and ``body`` follow addresses, ``accesses``
lists what is done where.
"""
