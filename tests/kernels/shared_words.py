"""The shared words: which operations each one is open to, and which word an address is.

docs/design/memory-orderings.md says why. Orderings are LLVM's names: 'monotonic' is C's relaxed.
"""

from cobre_kernels import layout
from cobre_kernels.mpi import table

from tests.kernels.ir_body import C_MEMORY, STACK
from tests.kernels.ir_values import GLOBAL

STEP = {("store", "monotonic"), ("load", "monotonic")}
WORDS = {
    "ARRIVED": {
        ("store", "seq_cst"),
        ("load", "acquire"),
        ("load", "seq_cst"),
        ("call", "syscall"),  # futex
    },
    "KIND": STEP,
    "LENGTH": STEP,
    "DETAIL": STEP,
    "CONDITION": {("store", "release"), ("load", "acquire")},
    "SLEEPERS": {("atomicrmw", "add seq_cst"), ("load", "seq_cst")},
    "VERDICT": STEP,
    "ERROR": STEP,
    "WAITED": STEP,
    "GUARD": {("cmpxchg", "acq_rel acquire"), ("load", "acquire"), ("store", "release")},
    # PUBLISHED, VERSION, SIZE, BUFFER_BYTES, OWNER_PID, READY and PID, by their address alone.
    "START": {("load", "acquire"), ("store", "release")},
}
CELL = {
    layout.ARRIVED: "ARRIVED",
    layout.KIND: "KIND",
    layout.LENGTH: "LENGTH",
    layout.DETAIL: "DETAIL",
}
PAYLOADS = {layout.CELLS + parity * layout.CELL_BYTES + layout.PAYLOAD for parity in range(2)}
STAGE = {table.VERDICT: "VERDICT", table.ERROR: "ERROR", table.WAITED: "WAITED"}

# Memory that only this process sees, or that belongs to the caller.
PRIVATE = {"state", "local", "mpi", "private", "user", STACK, GLOBAL, C_MEMORY}
# Data: plain, because the words above order it.
DATA = {"payload", "buffers", "data"}
BLOCK = "<8 x i64>"  # what copy_blocks and stream_blocks move, and nothing else does
DATA_ACCESSES = {"plain", "copy"}

FIELDS = {
    ("state", layout.CONTROL): "control",
    ("state", layout.BUFFERS): "buffers",
    ("state", layout.LINKS): "mpi",
    ("local", layout.CONTROL): "control",
    ("local", layout.BUFFERS): "buffers",
    ("mpi", table.LOCAL): "local",
    ("mpi", table.STAGE): "stage",
}
# The kernels that kernels call by address, each analysed as one of its own.
CALLED = {
    layout.FOLD_KERNEL: "fold",
    layout.SHARED_KERNELS: "enter",  # as in mpi/shared.py, which must not be imported here
    layout.SHARED_KERNELS + 8: "agree",
    layout.SHARED_KERNELS + 16: "hand_out",
}
for _offset, _name in CALLED.items():
    FIELDS["state", _offset] = _name
for _name in (
    "ORDER", "PLACES", "STARTS", "NODE_OF", "HEAD", "HEADS", "COUNTS", "REASONS",
    "NEWS_OUT", "NEWS_IN", "NEWS_REQUESTS", "HEARD", "SMALL_OUT", "STATUS",
):  # fmt: skip
    FIELDS["mpi", getattr(table, _name)] = "private"


def fields(root, offset):
    """Return the root whose address is in a word."""
    return FIELDS.get((root, offset))


def _in_block(offset):
    return (offset - layout.HEADER_BYTES) % layout.RANK_BYTES


def _in_cell(offset):
    """Return the offset in a cell, or None for another word of a rank's block."""
    block = _in_block(offset)
    return (block - layout.CELLS) % layout.CELL_BYTES if block >= layout.CELLS else None


def rebase(root, offsets, stride):
    """Tell data from words: return the place that a place is counted from, or None.

    The PAYLOAD of either cell of some rank begins data; what varies and is added to that address
    stays data. Collective buffers are data anywhere, a stage is after its words.
    """
    of_a_rank = root == "control" and stride % layout.RANK_BYTES == 0
    if of_a_rank and {_in_block(o) for o in offsets} == PAYLOADS:
        return "payload", {0}, 0
    if root == "payload" and stride:
        return "payload", {0}, 1
    if root == "stage" and (stride or min(offsets) >= table.RECORDS):
        return "data", {0}, 1
    return (root, {0}, 1) if root in ("data", "buffers", "user", "private") else None


def words_at(access):
    """Return the names of the shared words that an access may touch; 'data', '' for private."""
    root, offsets, stride = access.root, access.offsets, access.stride
    if root == "control" and stride % layout.RANK_BYTES == 0:
        return {control_word(o) for o in offsets}
    if root == "control" and (access.how == "copy" or BLOCK in access.text):
        return {"data"}
    if root == "payload" and stride == 0:
        return {control_word(min(PAYLOADS) + layout.HEADER_BYTES + o) for o in offsets}
    if root in DATA:
        return {"data"}
    if root == "stage" and stride == 0:
        return {STAGE.get(o, f"stage+{o}") for o in offsets}
    if root in ("state", "local") and stride == 0 and layout.GUARD in offsets:
        return {"GUARD"}
    if root == "word":
        return {"START"}
    return {""} if root in PRIVATE else {f"unknown ({root})"}


def control_word(offset):
    """Return the name of the word at an offset of the control region; "data" for PAYLOAD."""
    if 0 <= offset < layout.HEADER_BYTES:
        return f"header+{offset}"
    block, cell = _in_block(offset), _in_cell(offset)
    if cell is not None:
        return "data" if cell >= layout.PAYLOAD else CELL.get(cell, f"cell+{cell}")
    return {layout.CONDITION: "CONDITION", layout.SLEEPERS: "SLEEPERS"}.get(block, f"block+{block}")


def complaint(access):
    """Return what is wrong with an access, or None."""
    if access.what == "escape":
        kept = access.root in PRIVATE
        return None if kept else f"a shared address is stored: {access}"
    for word in words_at(access):
        if access.what == "call" and access.how in CALLED.values():
            # The fold is given data; all of them the state, which begins with GUARD.
            wrong = word not in ({"", "data", "GUARD"} if access.how == "fold" else {"", "GUARD"})
        elif word == "":
            wrong = access.how not in DATA_ACCESSES and access.what != "call"
        elif word == "data":
            through_mpi = access.what == "call" and access.how.startswith("cobre_MPI_")
            wrong = access.how not in DATA_ACCESSES and not through_mpi
        else:
            wrong = (access.what, access.how) not in WORDS.get(word, set())
            wrong = wrong or (access.what != "call" and access.align != layout.WORD_BYTES)
        if wrong:
            return f"{word or 'private memory'}: {access.what} {access.how}: {access}"
    return None


def operations(accesses):
    """Return what is done to which shared word: ``{(word, what, how)}``."""
    return {
        (word, access.what, access.how)
        for access in accesses
        for word in words_at(access)
        if word in WORDS and access.what != "escape" and access.how not in CALLED.values()
    }
