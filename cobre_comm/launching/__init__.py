"""``launch``: call a function on every rank, and return its values.

This package has another name, because one called ``launch`` would hide the function.
"""
