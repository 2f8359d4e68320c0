"""The union of all backends' types at run time; type checkers read ``cobre_comm/__init__.py``."""

import functools
import operator

from cobre_comm.backends import SPECS

CommBackend = functools.reduce(operator.or_, (spec.communicator() for spec in SPECS))
