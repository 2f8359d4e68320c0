"""A copy of the package with one fault: ``python -m planted.package_copy FAULT FOLDER``.

It is for faults in code that compiles into a user's own function, and in code that is Python alone,
because no kernel of a communicator has such code. The copy has its own ``__pycache__``, so that no
other has faulty code. If the fault is in a routine of the kernels, the kernels are copied too, and
all of them are compiled.
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
        if module is cobre_comm or in_package.startswith(true.name):
            shutil.copytree(true, folder / true.name, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / in_package
    path.write_text(patched(path.read_text(), fault.hunks))


if __name__ == "__main__":
    copy_with(PACKAGE_FAULTS[sys.argv[1]], pathlib.Path(sys.argv[2]))
