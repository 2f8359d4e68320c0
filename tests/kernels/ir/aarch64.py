"""What LLVM makes of a part's IR on 64-bit ARM, where nothing is ordered by itself."""

import re

from llvmlite import binding

from tests.kernels.ir import kernels
from tests.kernels.ir import text as ir_text

TRIPLE = "aarch64-linux-gnu"
PAUSE = "call void @llvm.x86.sse2.pause()"  # atomics.cpu_pause looks at the triple itself


def target():
    """Return LLVM's target, or None if this llvmlite has none for it."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        return binding.Target.from_triple(TRIPLE)
    except RuntimeError:
        return None


def ordering_instructions(text, features):
    """Return the instructions of a part's own function that order memory, in their order.

    Parameters
    ----------
    text : str
        The part's optimised IR, for this machine.
    features : str
        Of the processor: ``""`` is the first generation, ``"+lse,+rcpc"`` a newer one.
    """
    machine = target().create_target_machine(opt=3, features=features)
    text = re.sub(r'^target triple = ".*"$', f'target triple = "{TRIPLE}"', text, flags=re.M)
    text = re.sub(r"^target datalayout = .*$", "", text, flags=re.M)
    text = "\n".join(line for line in text.splitlines() if PAUSE not in line)
    module = binding.parse_assembly(text)
    module.data_layout = str(machine.target_data)
    module.verify()
    name = kernels.entry(ir_text.parse(text)).name
    assembly = machine.emit_assembly(module)
    body = assembly.split(f"\n{name}:")[1].split(".Lfunc_end")[0]
    found = re.findall(r"^\t(\w+)", body, flags=re.M)
    return [i for i in found if is_ordering(i)]


def is_ordering(instruction):
    """Whether an instruction has acquire or release semantics, is exclusive, or is a barrier."""
    atomics = r"(?:ldadd|swp|cas)(?:a|l|al)?|ld(?:ar|apr|axr|xr)|st(?:lr|lxr|xr)|dmb|dsb"
    return re.fullmatch(atomics, instruction) is not None
