"""A hydrothermal case: its data, how they are read from JSON, and random ones.

Plain Python and NumPy; nothing here is compiled.
"""
