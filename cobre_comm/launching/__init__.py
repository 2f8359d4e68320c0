"""``launch``: call a function on every rank, and return its values.

The ranks are started by the engine of every launcher (``cobre_comm.processes``). The
package is not called ``launch``, because a module of that name would hide the function.
"""
