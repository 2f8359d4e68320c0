"""The shared words: which operations each is open to, and what memory an address is in.

Which words are shared, and which hold addresses, is in the records. docs/design/memory-orderings.md
says why each word has its operations. Orderings are LLVM's names: 'monotonic' is C's relaxed.
"""

from typing import NamedTuple

from cobre_kernels.machine.record import RECORDS, WORD_BYTES

from tests.kernels import records  # declares all of them
from tests.kernels.ir.body import C_MEMORY, STACK
from tests.kernels.ir.values import GLOBAL

STEP = {("store", "monotonic"), ("load", "monotonic")}
WORDS = {
    "Cell.arrived": {
        ("store", "seq_cst"),
        ("load", "acquire"),
        ("load", "seq_cst"),
        ("call", "syscall"),  # futex
    },
    "Cell.signature": STEP,
    "Cell.length": STEP,
    "Cell.detail": STEP,
    "RankBlock.condition": {("store", "release"), ("load", "acquire")},
    "RankBlock.sleepers": {("atomicrmw", "add seq_cst"), ("load", "seq_cst")},
    "Comm.guard": {("cmpxchg", "acq_rel acquire"), ("load", "acquire"), ("store", "release")},
    "Staging.status": STEP,
    "Staging.mpi_error": STEP,
    "Staging.waited_ns": STEP,
    # Those of Control, and RankBlock.pid: by their address alone.
    "Word.value": {("load", "acquire"), ("store", "release")},
}

# Memory that only this process sees, or that belongs to the caller.
PRIVATE = {"table", "user", STACK, GLOBAL, C_MEMORY}
# Data that ranks share: plain, because the words above order it.
DATA = {"payload", "buffers", "data"}
BLOCK = "<8 x i64>"  # what copy_blocks and stream_blocks move, and nothing else does
DATA_ACCESSES = {"plain", "copy"}

# Words that hold the address of bytes. Others that hold addresses are of a kind that says so.
ADDRESSES = {"Comm.buffers": "buffers", "Mpi.halves": "buffers"}
ADDRESSES |= dict.fromkeys(("Mpi.counts", "Mpi.status", "Mpi.sends"), "user")
FOLD = "Comm.fold_kernel"  # the one kernel that is given data


class Word(NamedTuple):
    """A field of a record, and an offset in it."""

    record: str
    name: str
    inside: int

    @property
    def field(self):
        return RECORDS[self.record].fields[self.name]

    def __str__(self):
        return f"{self.record}.{self.name}" + (f"+{self.inside}" if self.inside else "")


def word_at(name, offset):
    """Return the word at an offset of a record, or None between its fields."""
    record = RECORDS[name]
    for field_name, field in record.fields.items():
        inside = offset - record.offsets[field_name]
        is_open = field.kind == "own_rows" and field.size_bytes == 0
        if inside >= 0 and (is_open or inside < field.size_bytes):
            if field.kind in ("own_rows", "part"):
                return word_at(field.target, inside % RECORDS[field.target].size_bytes)
            return Word(name, field_name, inside)
    return None


def is_private(name):
    """Whether a record is in memory of one process, apart from the words that threads share."""
    return any(field.kind == "word" for field in RECORDS[name].fields.values())


def open_rows(record):
    """Return where the rows begin that a record ends with, and their record; or None."""
    *_, (name, field) = record.fields.items()
    if field.kind == "own_rows" and field.size_bytes == 0:
        return record.offsets[name], RECORDS[field.target]
    return None


def payloads(name):
    """Return the offsets at which the data in a shared record begins."""
    record, found = RECORDS[name], set()
    for field_name, field in record.fields.items():
        first = record.offsets[field_name]
        if field.kind == "memory":
            found.add(first)
        elif field.kind == "own_rows" and field.size_bytes:
            width = RECORDS[field.target].size_bytes
            for row in range(first, first + field.size_bytes, width):
                found |= {row + offset for offset in payloads(field.target)}
    return found


def points_to(root, offset):
    """Return the root whose address is in a word, or None for a number."""
    word = word_at(root, offset) if root in RECORDS else None
    if word is None or word.inside:
        return None
    if word.field.kind in ("pointer", "rows"):
        return word.field.target
    if word.field.kind == "table":
        return "table"
    name = str(word)
    return name if name in records.KERNELS else ADDRESSES.get(name)


def rebase(root, offsets, stride):
    """Return the place that a place is counted from, or None: a row of its own, or data.

    The payload of either cell of some rank begins data; what varies and is added to that address
    stays data. Collective buffers and tables are so anywhere.
    """
    if root in PRIVATE | DATA and (stride or root != "payload"):
        return root, {0}, 1
    if root not in RECORDS:
        return None
    rows = open_rows(RECORDS[root])
    if rows is not None:
        begin, row = rows
        if stride == 0 or stride % row.size_bytes:
            return None
        if is_private(row.name) and not is_private(root):  # such as the records of failures
            return "data", {0}, 1
        return rebase(row.name, {o - begin for o in offsets}, 0)
    size_bytes = RECORDS[root].size_bytes
    if stride % size_bytes:
        return None
    offsets = {o % size_bytes for o in offsets}
    if not is_private(root) and offsets == payloads(root):
        return "payload", {0}, 0
    return root, offsets, 0


def words_at(access):
    """Return the names of the shared words that an access may touch; 'data', '' for private."""
    root, offsets, stride = access.root, access.offsets, access.stride
    if root in PRIVATE:
        return {""}
    if root == "payload" and stride == 0:
        begin = min(payloads("Cell"))
        return {name_at("Cell", (begin + o) % RECORDS["Cell"].size_bytes) for o in offsets}
    if root in DATA:
        return {"data"}
    if root in RECORDS and stride == 0:
        return {name_at(root, o) for o in offsets}
    if root in RECORDS:
        is_moved = access.how == "copy" or BLOCK in access.text
        if is_moved or not any(f.kind == "shared" for f in RECORDS[root].fields.values()):
            return {"" if is_private(root) else "data"}
    return {f"unknown ({root})"}


def name_at(root, offset):
    """Return the name of the shared word at an offset of a record; 'data', '' for private."""
    word = word_at(root, offset)
    if word is None:
        return f"{root}+{offset}"
    if word.field.kind == "shared":
        return str(word)
    return "" if is_private(root) else "data"


def complaint(access):
    """Return what is wrong with an access, or None."""
    if access.what == "escape":
        kept = access.root in PRIVATE or (access.root in RECORDS and is_private(access.root))
        return None if kept else f"a shared address is stored: {access}"
    for word in words_at(access):
        if access.what == "call" and access.how in records.KERNELS:
            # The first word of what a kernel is given may be shared: guard, or that of start-up.
            wrong = word not in {"", "Comm.guard"} | ({"data"} if access.how == FOLD else set())
        elif word == "":
            wrong = access.how not in DATA_ACCESSES and access.what != "call"
        elif word == "data":
            through_mpi = access.what == "call" and access.how.startswith("cobre_MPI_")
            wrong = access.how not in DATA_ACCESSES and not through_mpi
        else:
            wrong = (access.what, access.how) not in WORDS.get(word, set())
            wrong = wrong or (access.what != "call" and access.align != WORD_BYTES)
        if wrong:
            return f"{word or 'private memory'}: {access.what} {access.how}: {access}"
    return None


def operations(accesses):
    """Return what is done to which shared word: ``{(word, what, how)}``."""
    return {
        (word, access.what, access.how)
        for access in accesses
        for word in words_at(access)
        if word in WORDS and access.what != "escape" and access.how not in records.KERNELS
    }
