"""The union type of the backends, as it is at run time; ``cobre_comm`` tells type checkers."""

import functools
import operator

from cobre_comm.backends import SPECS

CommBackend = functools.reduce(operator.or_, (spec.communicator() for spec in SPECS))
