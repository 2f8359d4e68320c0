"""A hydrothermal case: its data, a reader for JSON, and random cases.

Plain Python and NumPy; nothing here is compiled.
"""
