"""A copy of the package with one fault: ``python -m planted.package_copy FAULT FOLDER``.

This is for faults in what compiles into a user's own function, and in what is Python alone: such
code is in no kernel of a communicator. The copy has its own ``__pycache__``, so that no other copy
finds its faulty code. The kernels are copied too, because the package runs only with kernels of its
own version. Unless the fault is in the kernels, the copy has the machine code of the sources that
were copied.
"""

import pathlib
import shutil
import sys

import cobre_kernels

import cobre_comm
from planted.faults import PACKAGE_FAULTS, patched


def copy_with(fault, folder):
    in_package = fault.path.removeprefix("kernels/")
    for module in (cobre_comm, cobre_kernels):
        true = pathlib.Path(module.__file__).parent
        shutil.copytree(true, folder / true.name, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / in_package
    path.write_text(patched(path.read_text(), fault.hunks))


if __name__ == "__main__":
    copy_with(PACKAGE_FAULTS[sys.argv[1]], pathlib.Path(sys.argv[2]))
