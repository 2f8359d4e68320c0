"""The part of mpi4py that programs without messages between two ranks use, over a communicator.

``docs/howto/mpi4py-programs.md`` lists what there is; mpi4py's documentation says what it does.
"""

from types import SimpleNamespace

__version__ = "4.1"  # of that documentation
rc = SimpleNamespace()  # what a program sets there changes nothing
