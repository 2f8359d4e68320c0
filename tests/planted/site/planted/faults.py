"""The planted faults: the story of each, and the lines in which its kernel differs.

All faults are in ``faults.patch``. Each has a name, a story of what goes wrong, the smallest number
of ranks with which the fault shows, the kernel that has the fault, and a patch as ``diff`` writes
it, without line numbers. The lines that a hunk takes away or keeps must be in the source exactly
once. ``parts`` in a patch is the module of that name in this folder. The first part of
``faults.patch`` patches ``cobre_kernels``. The second part patches ``cobre_comm``, and in
``kernels`` what compiles into a user's function. The third part patches any file of the repository,
for ``test_repository.py``.

There is no fault for a fold that uses a fused multiply-add, because that fold would be right: a
bare sum has no product to fuse, and ``fma(x, 1.0, acc)`` rounds as ``acc + x`` does. A fold that
adds float32 as float64 and rounds at each step would be right too. Contraction, an 80-bit register
or a wider accumulator do harm because no step rounds the sum: this is the fault
``sum-rounded-once``.
"""

import pathlib
from dataclasses import dataclass

from cobre_kernels.collective.calls import OPERATIONS
from cobre_kernels.collective.comm import RANKS

NUMBERS = {name: number for number, name in OPERATIONS.items()}
HERE = pathlib.Path(__file__).parent


@dataclass(frozen=True)
class Fault:
    """One fault."""

    name: str  # the value of `PLANTED_FAULT` that chooses this fault
    story: str  # what goes wrong
    ranks: int  # with fewer ranks than this, all results are right
    # The kernel that has the fault, such as `broadcast_entry`; or the call, such as `region.part`.
    changed: str
    path: str  # the file that is changed; its path begins with `cobre_kernels` or `cobre_comm`
    hunks: tuple  # for each change, the lines of the source, and the lines that replace them

    def plant(self, comm, address):
        """Give a communicator's record the address of the kernel with the fault."""
        name, _, part = self.changed.rpartition("_")
        if self.changed == "look_around_kernel":
            comm.paces[RANKS].look_around_kernel = address
        elif part == "kernel":
            setattr(comm, self.changed, address)
        else:
            setattr(comm.collectives[NUMBERS[name]], part, address)

    @property
    def kernel(self):
        """The name of the collective that the fault makes wrong."""
        if self.changed == "look_around_kernel":
            return "barrier"
        return (
            "allreduce" if self.changed.endswith("fold_kernel") else self.changed.partition("_")[0]
        )

    @property
    def class_name(self):
        """The name of the class of tests that has this fault."""
        return "Test" + "".join(word.capitalize() for word in self.name.split("-"))


def read(text):
    """Return the fault that one entry of ``faults.patch`` describes."""
    head, *hunks = text.split("@@\n")
    name, story, ranks, changed, _, after = head.splitlines()
    return Fault(
        name=name,
        story=story.removeprefix("Story: "),
        ranks=int(ranks.removeprefix("Ranks: ")),
        changed=changed.removeprefix("Kernel: "),
        path=after.removeprefix("+++ "),
        hunks=tuple((_lines(hunk, " -"), _lines(hunk, " +")) for hunk in hunks),
    )


def _lines(hunk, marks):
    lines = hunk.splitlines(keepends=True)
    return "".join(line[1:] for line in lines if line[0] in marks)


def patched(source, hunks):
    """Return the source with some lines replaced; each replaced line must be in the source once."""
    for before, after in hunks:
        count = ("\n" + source).count("\n" + before)
        if count != 1:
            raise ValueError(
                f"these lines are {count} times in the kernel, not once; "
                f"the patch should follow what the kernel has become:\n{before}"
            )
        source = ("\n" + source).replace("\n" + before, "\n" + after)[1:]
    return source


def _read_all():
    """Yield the faults of each part of ``faults.patch``, by name."""
    _, *parts = (HERE / "faults.patch").read_text().split("==== ")
    for part in parts:
        faults = map(read, part.split("Fault: ")[1:])
        yield {fault.name: fault for fault in faults}


FAULTS, PACKAGE_FAULTS, REPOSITORY_FAULTS = _read_all()
