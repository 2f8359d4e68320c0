"""Memory: atomic and plain access to 64-bit words by address, fences and copies.

Every word that another process writes is touched through this file alone. LLVM would hoist a plain
NumPy load out of a loop, which then never ends. Orderings are those of C11 and LLVM, so they hold
on aarch64 as well as on x86-64.

Under ``NUMBA_DISABLE_JIT=1`` the same names are Python functions over :mod:`ctypes`. They are good
enough to step through the kernels of one process, because CPython's 8-byte store does not tear.
"""

import ctypes

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from cobre_kernels.machine.record import WORD_BYTES, peek_now, poke_now

COPY_BLOCK_BYTES = 256
COPY_ALIGNMENT = 64

_I1 = ir.IntType(1)
_I8 = ir.IntType(8)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


def _pointer(builder, address, pointee=_I64):
    return builder.inttoptr(address, pointee.as_pointer())


def _load(ordering):
    def typing(typingctx, address):
        def codegen(context, builder, signature, args):
            pointer = _pointer(builder, args[0])
            if ordering is None:
                return builder.load(pointer, align=WORD_BYTES)
            return builder.load_atomic(pointer, ordering, align=WORD_BYTES)

        return types.int64(types.int64), codegen

    return typing


def _store(ordering):
    def typing(typingctx, address, value):
        def codegen(context, builder, signature, args):
            pointer = _pointer(builder, args[0])
            if ordering is None:
                builder.store(args[1], pointer, align=WORD_BYTES)
            else:
                builder.store_atomic(args[1], pointer, ordering, align=WORD_BYTES)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return typing


def _call_void_intrinsic(builder, name, argument_types, arguments):
    function = builder.module.declare_intrinsic(
        name, (), ir.FunctionType(ir.VoidType(), argument_types)
    )
    builder.call(function, arguments)


if not config.DISABLE_JIT:
    peek = intrinsic(_load(None))
    peek.__doc__ = "Plain load of a word that no record names: of NumPy, MPI, tables, payloads."
    poke = intrinsic(_store(None))
    poke.__doc__ = "Plain store to such a word."
    load_relaxed = intrinsic(_load("monotonic"))
    load_acquire = intrinsic(_load("acquire"))
    load_seq_cst = intrinsic(_load("seq_cst"))
    store_relaxed = intrinsic(_store("monotonic"))
    store_release = intrinsic(_store("release"))
    store_seq_cst = intrinsic(_store("seq_cst"))

    @intrinsic
    def fetch_add(typingctx, address, value):
        """Add to a word, sequentially consistent; return what it held before."""

        def codegen(context, builder, signature, args):
            return builder.atomic_rmw("add", _pointer(builder, args[0]), args[1], "seq_cst")

        return types.int64(types.int64, types.int64), codegen

    @intrinsic
    def compare_exchange(typingctx, address, expected, desired):
        """Store ``desired`` if the word holds ``expected``; return what it held (acq_rel)."""

        def codegen(context, builder, signature, args):
            pair = builder.cmpxchg(
                _pointer(builder, args[0]), args[1], args[2], "acq_rel", "acquire"
            )
            return builder.extract_value(pair, 0)

        return types.int64(types.int64, types.int64, types.int64), codegen

    @intrinsic
    def fence_seq_cst(typingctx):
        """Full memory fence."""

        def codegen(context, builder, signature, args):
            builder.fence("seq_cst")
            return context.get_dummy_value()

        return types.void(), codegen

    @intrinsic
    def swap_bytes(typingctx, word):
        """Turn a word from this machine's byte order into the other one."""

        def codegen(context, builder, signature, args):
            return builder.bswap(args[0])

        return types.int64(types.int64), codegen

    @intrinsic
    def cpu_pause(typingctx):
        """Tell the core that it spins: ``pause`` on x86, ``yield`` on aarch64."""

        def codegen(context, builder, signature, args):
            triple = builder.module.triple or ""
            if triple.startswith(("x86_64", "i686")):
                _call_void_intrinsic(builder, "llvm.x86.sse2.pause", [], [])
            elif triple.startswith(("aarch64", "arm64")):
                hint_yield = ir.Constant(_I32, 1)
                _call_void_intrinsic(builder, "llvm.aarch64.hint", [_I32], [hint_yield])
            return context.get_dummy_value()

        return types.void(), codegen

    @intrinsic
    def copy_bytes(typingctx, destination, source, count):
        """``memcpy``: the ranges do not overlap."""

        def codegen(context, builder, signature, args):
            byte = _I8.as_pointer()
            function = builder.module.declare_intrinsic(
                "llvm.memcpy",
                (byte, byte, _I64),
                ir.FunctionType(ir.VoidType(), [byte, byte, _I64, _I1]),
            )
            pointers = [_pointer(builder, a, _I8) for a in args[:2]]
            builder.call(function, [*pointers, args[2], ir.Constant(_I1, 0)])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    def _vector_copy(alignment, is_streaming=False):
        """Make the codegen of a loop over blocks of four 64-byte vectors.

        Its arguments are pairs of destination and source, and the number of blocks. The stores are
        volatile, or non-temporal, because LLVM would turn a plain loop back into the ``memcpy``
        that it is there to avoid (``copy.py``).
        """
        vector = ir.VectorType(_I64, 8)

        def copy_block(builder, destination, source, places):
            loaded = [
                builder.load(_pointer(builder, builder.add(source, place), vector), align=1)
                for place in places
            ]
            for value, place in zip(loaded, places, strict=True):
                pointer = _pointer(builder, builder.add(destination, place), vector)
                store = builder.store(value, pointer, align=alignment)
                if is_streaming:
                    one = builder.module.add_metadata([ir.Constant(_I32, 1)])
                    store.set_metadata("nontemporal", one)
                else:
                    store.volatile = True

        def codegen(context, builder, signature, args):
            *addresses, blocks = args
            before = builder.block
            loop = builder.append_basic_block("copy")
            done = builder.append_basic_block("copied")
            nothing = builder.icmp_signed("<=", blocks, ir.Constant(_I64, 0))
            builder.cbranch(nothing, done, loop)
            builder.position_at_end(loop)
            index = builder.phi(_I64)
            index.add_incoming(ir.Constant(_I64, 0), before)
            offset = builder.mul(index, ir.Constant(_I64, COPY_BLOCK_BYTES))
            places = [builder.add(offset, ir.Constant(_I64, 64 * i)) for i in range(4)]
            for pair in range(0, len(addresses), 2):
                copy_block(builder, addresses[pair], addresses[pair + 1], places)
            following = builder.add(index, ir.Constant(_I64, 1))
            index.add_incoming(following, loop)
            builder.cbranch(builder.icmp_signed("<", following, blocks), loop, done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return codegen

    @intrinsic
    def copy_blocks(typingctx, destination, source, blocks):
        """Copy blocks of COPY_BLOCK_BYTES with vector stores; ``destination`` is aligned."""
        codegen = _vector_copy(COPY_ALIGNMENT)
        return types.void(types.int64, types.int64, types.int64), codegen

    @intrinsic
    def copy_thirds(typingctx, a, from_a, b, from_b, third, blocks):
        """Copy blocks at the addresses, and at one and two ``third`` bytes on, all by turns."""
        loop = _vector_copy(1)

        def codegen(context, builder, signature, args):
            *bases, step, count = args
            twice = builder.add(step, step)
            further = [builder.add(base, places) for places in (step, twice) for base in bases]
            return loop(context, builder, signature, [*bases, *further, count])

        return types.void(*[types.int64] * 6), codegen

    @intrinsic
    def stream_blocks(typingctx, destination, source, blocks):
        """Copy blocks past the caches, for data that is not read again soon.

        Non-temporal stores are weakly ordered on x86-64, so a ``fence_seq_cst`` must follow before
        a store publishes the data.
        """
        codegen = _vector_copy(COPY_ALIGNMENT, is_streaming=True)
        return types.void(types.int64, types.int64, types.int64), codegen

else:

    def copy_blocks(destination, source, blocks):
        """Copy blocks of COPY_BLOCK_BYTES."""
        ctypes.memmove(destination, source, blocks * COPY_BLOCK_BYTES)

    stream_blocks = copy_blocks

    def copy_thirds(a, from_a, b, from_b, third, blocks):
        """Copy blocks at the addresses, and at one and two ``third`` bytes on."""
        for offset in (0, third, 2 * third):
            copy_blocks(a + offset, from_a + offset, blocks)
            copy_blocks(b + offset, from_b + offset, blocks)

    peek = peek_now

    poke = poke_now

    load_relaxed = load_acquire = load_seq_cst = peek
    store_relaxed = store_release = store_seq_cst = poke

    def fetch_add(address, value):
        """Add to a word; return what it held before."""
        before = peek(address)
        poke(address, before + value)
        return before

    def compare_exchange(address, expected, desired):
        """Store ``desired`` if the word holds ``expected``; return what it held."""
        before = peek(address)
        if before == expected:
            poke(address, desired)
        return before

    def fence_seq_cst():
        """Do nothing: the interpreter runs one instruction after the other."""

    def swap_bytes(word):
        """Turn a word from this machine's byte order into the other one."""
        return int.from_bytes(word.to_bytes(8, "little", signed=True), "big", signed=True)

    def cpu_pause():
        """Do nothing: the interpreter has no such instruction."""

    def copy_bytes(destination, source, count):
        """``memcpy``."""
        ctypes.memmove(destination, source, count)
