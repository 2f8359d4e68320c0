"""``launch``: call a function on every rank, and return its values.

The engine of all launchers starts the ranks (``cobre_comm.processes``). The package is not called
``launch``, because a module with this name would hide the function.
"""
