"""The communicator's methods in ``@njit`` code: check, run the entry, raise.

Each overload sees the types of the arguments. Wrong types give an implementation that raises when
it runs, with the message that Python gives. Otherwise the implementation makes the call, runs the
entry by its address, and raises :class:`~cobre_comm.failure.Failure` for a status other than OK.
Over ``local``, ``barrier``, ``broadcast`` and ``allreduce`` (not LAND or LOR) run an entry only if
something is wrong. A call of wrong types goes to the record's ``refuse``. Other problems
that only a method can see reach the entry as a length below zero.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
