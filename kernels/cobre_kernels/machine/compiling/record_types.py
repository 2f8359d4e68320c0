"""Records in compiled code: addresses with a numba type that knows the table of the record."""

import operator

from llvmlite import ir
from numba import types
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)

from cobre_kernels.machine.compiling.numba_internals import (
    AbstractTemplate,
    AttributeTemplate,
    cgutils,
    infer_global,
    signature,
)
from cobre_kernels.machine.record import RECORDS, WORD_BYTES
from cobre_kernels.machine.version import source_hash


class _AddressType(types.Type):
    """The numba type of an address that only our code makes; its name contains our version."""

    def __init__(self, what):
        super().__init__(name=f"Cobre{what}({source_hash()})")


class RecordType(_AddressType):
    """The address of a record."""

    def __init__(self, record_name):
        self.record_name = record_name
        super().__init__(record_name)

    @property
    def record(self):
        """The table."""
        return RECORDS[self.record_name]


class RowsType(_AddressType):
    """The address of records that follow each other."""

    def __init__(self, record_name):
        self.record_name = record_name
        super().__init__(f"{record_name}Rows")


class TableType(_AddressType):
    """The address of words that follow each other."""

    def __init__(self):
        super().__init__("Table")


table_type = TableType()


@register_model(RecordType)
@register_model(RowsType)
@register_model(TableType)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, cgutils.intp_t)


def _type_of(field):
    if field.kind in ("word", "shared", "memory"):
        return types.int64
    if field.kind == "table":
        return table_type
    return (RowsType if field.kind in ("rows", "own_rows") else RecordType)(field.target)


@infer_getattr
class _RecordAttributes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, typ, attr):
        if attr == "address":
            return types.int64
        field = typ.record.fields.get(attr)
        return None if field is None else _type_of(field)


def _word_at(builder, address):
    return builder.inttoptr(address, cgutils.intp_t.as_pointer())


@lower_getattr_generic(RecordType)
def _read_field(context, builder, typ, value, attr):
    if attr == "address":
        return value
    field = typ.record.fields[attr]
    at = builder.add(value, ir.Constant(cgutils.intp_t, typ.record.offsets[attr]))
    if field.kind in ("shared", "memory", "part", "own_rows"):
        return at
    return builder.load(_word_at(builder, at), align=WORD_BYTES)


@lower_setattr_generic(RecordType)
def _write_field(context, builder, sig, args, attr):
    record = sig.args[0].record
    assert record.fields[attr].kind == "word", f"{record.name}.{attr} is not a word"
    at = builder.add(args[0], ir.Constant(cgutils.intp_t, record.offsets[attr]))
    builder.store(args[1], _word_at(builder, at), align=WORD_BYTES)


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args, kws):
        container, _ = args
        if isinstance(container, TableType):
            return signature(types.int64, container, types.intp)
        if isinstance(container, RowsType):
            return signature(RecordType(container.record_name), container, types.intp)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args, kws):
        if isinstance(args[0], TableType):
            return signature(types.void, args[0], types.intp, types.int64)
        return None


def _element(builder, args, size_bytes):
    offset = builder.mul(args[1], ir.Constant(cgutils.intp_t, size_bytes))
    return builder.add(args[0], offset)


@lower_builtin(operator.getitem, RowsType, types.intp)
def _row(context, builder, sig, args):
    return _element(builder, args, RECORDS[sig.args[0].record_name].size_bytes)


@lower_builtin(operator.getitem, TableType, types.intp)
def _entry(context, builder, sig, args):
    address = _element(builder, args, WORD_BYTES)
    return builder.load(_word_at(builder, address), align=WORD_BYTES)


@lower_builtin(operator.setitem, TableType, types.intp, types.int64)
def _set_entry(context, builder, sig, args):
    address = _element(builder, args, WORD_BYTES)
    builder.store(args[2], _word_at(builder, address), align=WORD_BYTES)
    return context.get_dummy_value()
