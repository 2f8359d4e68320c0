"""The communicator's methods in ``@njit`` code: check, run the entry, raise.

Each overload gets the types of the arguments. For wrong types it returns an implementation that
raises when it runs, with the message that Python gives. For other types it returns an
implementation that makes the call, runs the entry by its address, and raises
:class:`~cobre_comm.failure.Failure` for a status other than OK. Over ``local``, ``barrier``,
``broadcast`` and ``allreduce`` (not LAND or LOR) run an entry only if something is wrong. A call
with wrong types goes to the record's ``refuse``. Any other problem that only a method can see
reaches the entry as a length below zero.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
