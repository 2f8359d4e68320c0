"""Brings a call from Python to its entry, by compiled code that reads CPython's own objects."""
