"""The place: virtual machines with several NUMA nodes.

These machines show on which CPUs ranks run, and on which NUMA nodes pages are. They cannot show
what distance costs, because all NUMA nodes of a virtual machine are in the memory of this machine.
"""

import re
import sys

from places.frame import ROOT, expect, run
from places.numa.machine import Layout, Machine

TESTS = "tests/launch/run/test_numa.py"
TWO_SOCKETS = Layout("4,sockets=2,cores=2,threads=1", ("0-1", "2-3"))
# Each layout, and the tests that run on it. Pages do not depend on sockets, so some layouts need
# not run the tests of pages.
TRIALS = {
    "two sockets, a NUMA node in each": (TWO_SOCKETS, "test"),
    "one socket with two NUMA nodes": (
        Layout("4,sockets=1,cores=4,threads=1", ("0-1", "2-3")),
        "bound",
    ),
    "a third NUMA node, without CPUs": (
        Layout("4,sockets=2,cores=2,threads=1", ("0-1", "2-3", "")),
        "bound or shm",
    ),
}
# a factor of time limits, because the emulation shares two cores with other work
EMULATED_LIMITS = 20


def run_place(place, folder, stack):
    """Run the tests on each machine; return the versions."""
    machine = Machine(folder)
    # These kernels are for any processor, because an emulated processor has fewer instructions than
    # the processor of this machine.
    kernels = str(folder / "kernels")
    extra = {"XDG_CACHE_HOME": str(folder / "cache"), "COBRE_COMM_KERNELS": kernels}
    build = "-m", "cobre_kernels.machine.build", "--levels", "x86-64"
    with place.row("kernels for any processor", f"python {' '.join(build)} FOLDER") as seen:
        done = run(sys.executable, *build, kernels, within_s=600)
        expect(done.code == 0, done)
        seen.append("compiled")
    limits = 1 if machine.has_kvm else EMULATED_LIMITS
    quiet = "-q", "--color=no", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0"
    words = sys.executable, "-m", "pytest", *quiet, TESTS
    for what, (layout, chosen) in TRIALS.items():
        with place.row(what, f"pytest {TESTS} -k '{chosen}'") as seen:
            done = machine.run(layout, *words, "-k", chosen, cwd=ROOT, within_s=60 + 240 * limits,
                               COBRE_TEST_LIMITS=str(limits), **extra)  # fmt: skip
            expect(done.code == 0 and "skipped" not in done.output, done)
            seen += re.findall(r"\d+ passed", done.output)
    how = "KVM" if machine.has_kvm else "emulated processors, without KVM"
    return f"{machine.versions}, {how}"
