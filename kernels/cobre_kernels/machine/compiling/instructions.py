"""The instructions of LLVM that stand for functions of Python in compiled code.

Each function of this file writes the instructions of the :class:`~.compiled.Instruction` that has
its name. Only files that compile import this file.
"""

import ctypes

from llvmlite import ir
from numba import from_dtype, types

from cobre_kernels.machine.atomics import COPY_ALIGNMENT, COPY_BLOCK_BYTES
from cobre_kernels.machine.compiling.numba_internals import cgutils
from cobre_kernels.machine.compiling.record_types import RecordType, table_type
from cobre_kernels.machine.libc import CLOCK_MONOTONIC, CLOCK_REALTIME, NS_PER_S, SYS_FUTEX
from cobre_kernels.machine.record import WORD_BYTES

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
C_KINDS = {ctypes.c_int: types.int32, ctypes.c_int64: types.int64, None: types.void}
ARM = ("aarch64", "arm64")
ARM_COUNTER = "cntvct_el0"
FLAG = "cobre_stop_flag"

WRITERS = {}  # by an instruction's name: what makes its typing from its detail and argument types


def _written(function):
    WRITERS[function.__name__] = function
    return function


def _plain(result, *arguments):
    """Make the typing of an instruction with fixed types of its result and of its arguments."""

    def decorate(codegen):
        WRITERS[codegen.__name__] = lambda detail, *_: (result(*arguments), codegen)
        return codegen

    return decorate


def _pointer(builder, address, pointee=I64):
    return builder.inttoptr(address, pointee.as_pointer())


def _declared(builder, name, function_type):
    known = builder.module.globals.get(name)
    return ir.Function(builder.module, function_type, name) if known is None else known


def _is_arm(builder):
    return (builder.module.triple or "").startswith(ARM)


_WORD, _NOTHING = types.int64, types.void


# Instructions on words.


def _load(ordering):
    def codegen(context, builder, signature, args):
        pointer = _pointer(builder, args[0])
        if ordering is None:
            return builder.load(pointer, align=WORD_BYTES)
        return builder.load_atomic(pointer, ordering, align=WORD_BYTES)

    return lambda detail, *_: (_WORD(_WORD), codegen)


def _store(ordering):
    def codegen(context, builder, signature, args):
        pointer = _pointer(builder, args[0])
        if ordering is None:
            builder.store(args[1], pointer, align=WORD_BYTES)
        else:
            builder.store_atomic(args[1], pointer, ordering, align=WORD_BYTES)
        return context.get_dummy_value()

    return lambda detail, *_: (_NOTHING(_WORD, _WORD), codegen)


WRITERS |= {
    "peek": _load(None),
    "load_relaxed": _load("monotonic"),
    "load_acquire": _load("acquire"),
    "load_seq_cst": _load("seq_cst"),
    "poke": _store(None),
    "store_relaxed": _store("monotonic"),
    "store_release": _store("release"),
    "store_seq_cst": _store("seq_cst"),
}


@_plain(_WORD, _WORD, _WORD)
def fetch_add(context, builder, signature, args):
    return builder.atomic_rmw("add", _pointer(builder, args[0]), args[1], "seq_cst")


@_plain(_WORD, _WORD, _WORD, _WORD)
def compare_exchange(context, builder, signature, args):
    pair = builder.cmpxchg(_pointer(builder, args[0]), args[1], args[2], "acq_rel", "acquire")
    return builder.extract_value(pair, 0)


@_plain(_NOTHING)
def fence_seq_cst(context, builder, signature, args):
    builder.fence("seq_cst")
    return context.get_dummy_value()


@_plain(_WORD, _WORD)
def swap_bytes(context, builder, signature, args):
    return builder.bswap(args[0])


@_plain(_NOTHING)
def cpu_pause(context, builder, signature, args):
    if _is_arm(builder):
        _call_void(builder, "llvm.aarch64.hint", [I32], [ir.Constant(I32, 1)])  # yield
    elif (builder.module.triple or "").startswith(("x86_64", "i686")):
        _call_void(builder, "llvm.x86.sse2.pause", [], [])
    return context.get_dummy_value()


def _call_void(builder, name, argument_types, arguments):
    function_type = ir.FunctionType(ir.VoidType(), argument_types)
    builder.call(builder.module.declare_intrinsic(name, (), function_type), arguments)


# Instructions that copy.


@_plain(_NOTHING, _WORD, _WORD, _WORD)
def copy_bytes(context, builder, signature, args):
    byte = I8.as_pointer()
    function_type = ir.FunctionType(ir.VoidType(), [byte, byte, I64, I1])
    # Not memcpy, because glibc has two versions of it. Our shared library names no version of
    # glibc, so that other C libraries can load it too. Therefore it would get the older memcpy,
    # which takes up to 8 percent longer.
    function = builder.module.declare_intrinsic("llvm.memmove", (byte, byte, I64), function_type)
    pointers = [_pointer(builder, a, I8) for a in args[:2]]
    builder.call(function, [*pointers, args[2], ir.Constant(I1, 0)])
    return context.get_dummy_value()


def _copy_loop(context, builder, addresses, blocks, alignment, is_streaming=False):
    """Write a loop over blocks of four 64-byte vectors, for pairs of destination and source.

    The stores are volatile or non-temporal. Otherwise LLVM would turn the loop into a call of
    ``memcpy``, which this loop replaces (``copy.py``).
    """
    vector = ir.VectorType(I64, 8)

    def copy_block(destination, source, places):
        loaded = [
            builder.load(_pointer(builder, builder.add(source, place), vector), align=1)
            for place in places
        ]
        for value, place in zip(loaded, places, strict=True):
            pointer = _pointer(builder, builder.add(destination, place), vector)
            store = builder.store(value, pointer, align=alignment)
            if is_streaming:
                one = builder.module.add_metadata([ir.Constant(I32, 1)])
                store.set_metadata("nontemporal", one)
            else:
                store.volatile = True

    before = builder.block
    loop = builder.append_basic_block("copy")
    done = builder.append_basic_block("copied")
    nothing = builder.icmp_signed("<=", blocks, ir.Constant(I64, 0))
    builder.cbranch(nothing, done, loop)
    builder.position_at_end(loop)
    index = builder.phi(I64)
    index.add_incoming(ir.Constant(I64, 0), before)
    offset = builder.mul(index, ir.Constant(I64, COPY_BLOCK_BYTES))
    places = [builder.add(offset, ir.Constant(I64, 64 * i)) for i in range(4)]
    for pair in range(0, len(addresses), 2):
        copy_block(addresses[pair], addresses[pair + 1], places)
    following = builder.add(index, ir.Constant(I64, 1))
    index.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, blocks), loop, done)
    builder.position_at_end(done)
    return context.get_dummy_value()


@_plain(_NOTHING, _WORD, _WORD, _WORD)
def copy_blocks(context, builder, signature, args):
    return _copy_loop(context, builder, args[:2], args[2], COPY_ALIGNMENT)


@_plain(_NOTHING, *[_WORD] * 6)
def copy_thirds(context, builder, signature, args):
    *bases, step, blocks = args
    twice = builder.add(step, step)
    further = [builder.add(base, places) for places in (step, twice) for base in bases]
    return _copy_loop(context, builder, [*bases, *further], blocks, 1)


@_plain(_NOTHING, _WORD, _WORD, _WORD)
def stream_blocks(context, builder, signature, args):
    return _copy_loop(context, builder, args[:2], args[2], COPY_ALIGNMENT, is_streaming=True)


# Instructions on elements, tables and records.


def _element(context, builder, element, address, index):
    first = builder.inttoptr(address, context.get_value_type(element).as_pointer())
    return builder.gep(first, [index], inbounds=True)


@_written
def load_element(dtype, *_):
    element = from_dtype(dtype)

    def codegen(context, builder, signature, args):
        return builder.load(_element(context, builder, element, *args))

    return element(_WORD, _WORD), codegen


@_written
def store_element(dtype, *_):
    element = from_dtype(dtype)

    def codegen(context, builder, signature, args):
        builder.store(args[2], _element(context, builder, element, *args[:2]))
        return context.get_dummy_value()

    return _NOTHING(_WORD, _WORD, element), codegen


def _same(context, builder, signature, args):
    return args[0]


@_written
def table_at(detail, *_):
    return table_type(_WORD), _same


@_written
def record_at(record, *_):
    return RecordType(record.name)(_WORD), _same


@_plain(_WORD, types.float64)
def bits_of(context, builder, signature, args):
    return builder.bitcast(args[0], I64)


@_plain(types.float64, _WORD)
def float_of(context, builder, signature, args):
    return builder.bitcast(args[0], ir.DoubleType())


@_plain(types.float64, types.float64)
def square_root(context, builder, signature, args):
    function = builder.module.declare_intrinsic("llvm.sqrt", [ir.DoubleType()])
    return builder.call(function, args)


# The floating-point mode of a thread: the bits of the thread's control word that belong to a mode.

X86_MODE = 0xE040  # MXCSR: flush to zero, rounding, denormals are zeros
ARM_MODE = 0x3C80007  # FPCR: default NaN, flush to zero, rounding, and bits of later versions


def _control_word(builder):
    """Return the control word of the thread, and a function that writes the control word."""
    if _is_arm(builder):
        function_type = ir.FunctionType(I64, [])
        read = builder.module.declare_intrinsic("llvm.aarch64.get.fpcr", (), function_type)
        return builder.call(read, []), lambda word: _call_void(
            builder, "llvm.aarch64.set.fpcr", [I64], [word]
        )
    place, byte = cgutils.alloca_once(builder, I32), I8.as_pointer()
    pointer = builder.bitcast(place, byte)

    def write(word):
        builder.store(builder.trunc(word, I32), place)
        _call_void(builder, "llvm.x86.sse.ldmxcsr", [byte], [pointer])

    _call_void(builder, "llvm.x86.sse.stmxcsr", [byte], [pointer])
    return builder.zext(builder.load(place), I64), write


def _mode_bits(builder):
    return ir.Constant(I64, ARM_MODE if _is_arm(builder) else X86_MODE)


def _set_mode(builder, mode):
    word, write = _control_word(builder)
    others = builder.and_(word, builder.not_(_mode_bits(builder)))
    write(builder.or_(others, mode))


@_plain(_WORD)
def float_mode(context, builder, signature, args):
    return builder.and_(_control_word(builder)[0], _mode_bits(builder))


@_plain(_NOTHING, _WORD)
def set_float_mode(context, builder, signature, args):
    _set_mode(builder, args[0])
    return context.get_dummy_value()


@_plain(types.float64, types.float64, _WORD)
def in_float_mode(context, builder, signature, args):
    """Store the number and load it again: LLVM moves no volatile access past the change of mode."""
    place = cgutils.alloca_once(builder, ir.DoubleType())
    builder.store(args[0], place).volatile = True
    _set_mode(builder, args[1])
    number = builder.load(place)
    number.volatile = True
    return number


# Clocks, and calls of C.


def _clock(number):
    def codegen(context, builder, signature, args):
        # The timespec is allocated in the first block of the function, because in a loop each pass
        # would take more of the stack.
        timespec = cgutils.alloca_once(builder, ir.ArrayType(I64, 2))
        zero, one = ir.Constant(I32, 0), ir.Constant(I32, 1)
        seconds = builder.gep(timespec, [zero, zero])
        function_type = ir.FunctionType(I32, [I32, I64.as_pointer()])
        callee = _declared(builder, "clock_gettime", function_type)
        builder.call(callee, [ir.Constant(I32, number), seconds])
        nanoseconds = builder.load(builder.gep(timespec, [zero, one]))
        scaled = builder.mul(builder.load(seconds), ir.Constant(I64, NS_PER_S))
        return builder.add(scaled, nanoseconds)

    return lambda detail, *_: (_WORD(), codegen)


WRITERS |= {"monotonic_ns": _clock(CLOCK_MONOTONIC), "realtime_ns": _clock(CLOCK_REALTIME)}


@_plain(_WORD)
def ticks(context, builder, signature, args):
    module = builder.module
    if not _is_arm(builder):
        function = module.declare_intrinsic("llvm.readcyclecounter", (), ir.FunctionType(I64, []))
        return builder.call(function, [])
    function_type = ir.FunctionType(I64, [ir.MetaDataType()])
    function = module.declare_intrinsic("llvm.read_volatile_register", [I64], function_type)
    return builder.call(function, [module.add_metadata([ARM_COUNTER])])


@_plain(_WORD, *[_WORD] * 4)
def futex(context, builder, signature, args):
    callee = _declared(builder, "syscall", ir.FunctionType(I64, [I64], var_arg=True))
    return builder.call(callee, [ir.Constant(I64, SYS_FUTEX), *args])


@_plain(_WORD, _WORD, _WORD, _WORD)
def fcntl(context, builder, signature, args):
    callee = _declared(builder, "fcntl", ir.FunctionType(I32, [I32, I32], var_arg=True))
    fd_and_command = [builder.trunc(a, I32) for a in args[:2]]
    return builder.sext(builder.call(callee, [*fd_and_command, args[2]]), I64)


@_written
def call_c(kinds, *_):
    """Call the function of C at an address; ``kinds`` are the kinds of its result and arguments."""
    result, *arguments = (C_KINDS[kind] for kind in kinds)

    def codegen(context, builder, signature, args):
        llvm_types = [context.get_value_type(kind) for kind in arguments]
        function_type = ir.FunctionType(context.get_value_type(result), llvm_types)
        return builder.call(_pointer(builder, args[0], function_type), args[1:])

    return result(_WORD, *arguments), codegen


# Calls of kernels.


@_written
def run(detail, address, record, call):
    """Call a kernel in the way of C, with the words of the call as its arguments."""

    def codegen(context, builder, signature, args):
        words = [args[1]]
        for number, kind in enumerate(call.types):
            value = builder.extract_value(args[2], number)
            words.append(context.cast(builder, value, kind, types.int64))
        function = _pointer(builder, args[0], ir.FunctionType(I64, [I64] * len(words)))
        return builder.call(function, words)

    return _WORD(_WORD, record, call), codegen


@_written
def run_alone(detail, address, record):
    def codegen(context, builder, signature, args):
        function = _pointer(builder, args[0], ir.FunctionType(I64, [I64]))
        return builder.call(function, args[1:])

    return _WORD(_WORD, record), codegen


@_plain(_WORD)
def stop_flag_word(context, builder, signature, args):
    """Load a word that is part of the machine code; the loader finds it by its name."""
    word = builder.module.globals.get(FLAG)
    if word is None:
        word = ir.GlobalVariable(builder.module, I64, FLAG)
        word.linkage, word.initializer = "linkonce_odr", ir.Constant(I64, 0)
    return builder.load_atomic(word, "monotonic", align=WORD_BYTES)
