"""``launch``: call a function on every rank, and return its values.

The ranks are started by the engine of every launcher (``cobre_comm.processes``). This package has
another name, because one called ``launch`` would hide the function.
"""
