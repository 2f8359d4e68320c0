"""The union type of the backends at run time; ``cobre_comm/__init__.py`` has it for checkers."""

import functools
import operator

from cobre_comm.backends import SPECS

CommBackend = functools.reduce(operator.or_, (spec.communicator() for spec in SPECS))
