"""``launch``: call a function on every rank, and return what it returned.

The function is called ``launch``, and a package of that name would hide it.
"""
