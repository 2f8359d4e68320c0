"""Broadcast: the root's chunk goes through its slot, one step a chunk, two chunks in flight."""

from cobre_kernels import layout
from cobre_kernels.arguments import check_broadcast
from cobre_kernels.atomics import peek
from cobre_kernels.copy import is_large, move, move_out, settle
from cobre_kernels.guard import enter, leave
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.kind import BROADCAST, pack_kind
from cobre_kernels.routine import routine
from cobre_kernels.shm.slot import fill_slot, slot_of
from cobre_kernels.shm.step import (
    await_all,
    await_rank,
    finish,
    next_generation,
    payload_of,
    publish,
)
from cobre_kernels.status import DISAGREE, OK


@kernel(arguments=4)
def broadcast_kernel(state, buffer, size_bytes, dtype, root):
    """The bytes at ``buffer`` become the root's; up to INLINE_BYTES of them go with the flag."""
    state = address_of(state)
    outcome = enter(state)
    if outcome != OK:
        return outcome
    outcome = check_broadcast(state, root)
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(BROADCAST, dtype, root)
    outcome = OK
    done = 0
    while True:
        chunk = min(size_bytes - done, peek(state + layout.CHUNK_BYTES))
        outcome = _chunk(state, buffer + done, chunk, size_bytes, kind, root)
        done += chunk
        if outcome != OK or done >= size_bytes:
            if is_large(size_bytes):
                settle()
            return finish(state, outcome, kind)


@routine
def _chunk(state, buffer, chunk, size_bytes, kind, root):
    generation = next_generation(state)
    is_inline = size_bytes <= layout.INLINE_BYTES
    is_root = peek(state + layout.RANK) == root
    if is_root and is_inline:
        move(payload_of(state, root, generation), buffer, chunk)
    elif is_root:
        fill_slot(state, generation, buffer, chunk)
    publish(state, generation, kind, size_bytes, size_bytes)
    if not is_root:
        outcome = await_rank(state, root, generation, kind, size_bytes)
        if outcome == OK and is_inline:
            move(buffer, payload_of(state, root, generation), chunk)
        elif outcome == OK:
            move_out(buffer, slot_of(state, root, generation), chunk, is_large(size_bytes))
        elif outcome != DISAGREE:
            return outcome
    return await_all(state, generation, kind, size_bytes)
