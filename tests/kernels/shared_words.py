"""The shared words: the operations that are allowed on each, and the word at an address.

The records say which words are shared, and docs/design/memory-orderings.md says why each word has
its operations. Orderings have LLVM's names: 'monotonic' is C's relaxed.
"""

from cobre_kernels.machine.record import RECORDS

STEP = {("store", "monotonic"), ("load", "monotonic")}
LISTED = {("load", "acquire"), ("store", "release")}
# Words of a journal, which one process writes and any process reads.
TOLD = {("store", "release"), ("load", "acquire")}
ADDED = TOLD | {("load", "monotonic")}
JOURNAL = {
    **dict.fromkeys(
        ("magic", "pid", "rank", "size", "backend", "communicator", "born_ticks", "born_ns"), TOLD
    ),
    **dict.fromkeys(("ended", "awaited", "awaited_in", "awaited_since"), TOLD),
    **dict.fromkeys(("called", "named", "phase"), ADDED),
}
NOTED = dict.fromkeys(
    ("number", "signature", "count", "size_bytes", "entered", "left", "came", "last"), ADDED
)
OPERATION = {
    **dict.fromkeys(("calls", "size_bytes", "ticks", "waited_calls", "waited_ticks"), ADDED),
    **dict.fromkeys(("worst", "worst_calls"), TOLD),
    "worst_ticks": ADDED,
}
WORDS = {
    "Cell.arrived": {
        ("store", "seq_cst"),
        ("load", "acquire"),
        ("load", "seq_cst"),
        ("call", "syscall"),  # the system call of a futex
    },
    "Cell.signature": STEP,
    "Cell.compared": STEP,
    "Cell.count": STEP,
    "RankBlock.condition": {("store", "seq_cst"), ("load", "acquire"), ("load", "seq_cst")},
    "RankBlock.writing": {("store", "seq_cst"), ("store", "release"), ("load", "seq_cst")},
    "Reading.mark": {("load", "acquire")},  # process_vm_writev stores it
    "RankBlock.sleepers": {("atomicrmw", "add seq_cst"), ("load", "seq_cst")},
    "Comm.guard": {("cmpxchg", "acq_rel acquire"), ("load", "acquire"), ("store", "release")},
    "StopFlag.requested": STEP,
    "Control.late_told": {("cmpxchg", "acq_rel acquire"), ("load", "monotonic")},
    "Staging.status": LISTED,
    "Staging.mpi_error": STEP,
    "Staging.waited_ns": STEP,
    "Staging.came": STEP,
    "Staging.last": STEP,
    "Staging.is_whole": STEP,
    "Pulse.beats": STEP,
    "Region.number": LISTED,
    "Region.begin": LISTED,
    "Region.end": LISTED,
    "RegionState.closed": LISTED,
    "Claims.made": {("atomicrmw", "add seq_cst"), ("store", "release")},
    "Work.round": LISTED | {("cmpxchg", "acq_rel acquire")},
    "Work.ended": STEP,
    "Regions.used": LISTED,
    **{f"Journal.{name}": operations for name, operations in JOURNAL.items()},
    **{f"NotedCall.{name}": operations for name, operations in NOTED.items()},
    **{f"Operation.{name}": operations for name, operations in OPERATION.items()},
    **dict.fromkeys(("Phase.entered", "Phase.ticks"), ADDED),
    "Letters.value": ADDED,
    "Raised.rank": ADDED,
    **dict.fromkeys(("Report.number", "Report.noted_ns", "Quantity.bits"), LISTED),
    **{f"Progress.{name}": LISTED for name in ("magic", "pid", "begun", "named")},
    # Words of Control, and RankBlock.pid, of which kernels get only the address.
    "Word.value": LISTED | {("cmpxchg", "acq_rel acquire")},
}


def name_at(name, offset):
    """Return the name of the shared word at an offset of a shared record, or "data"."""
    record = RECORDS[name]
    for field_name, field in record.fields.items():
        inside = offset - record.offsets[field_name]
        is_open = field.kind == "own_rows" and field.size_bytes == 0
        if inside >= 0 and (is_open or inside < field.size_bytes):
            if field.kind in ("own_rows", "part"):
                return name_at(field.target, inside % RECORDS[field.target].size_bytes)
            if field.kind != "shared":
                return "data"
            return f"{name}.{field_name}" + (f"+{inside}" if inside else "")
    return f"{name}+{offset}"
