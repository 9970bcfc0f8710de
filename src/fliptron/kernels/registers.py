"""Registers: vector instructions written out, where the compiler's own choice is slower."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from contextlib import contextmanager
from functools import reduce

from llvmlite import ir
from numba import types
from numba.core import cgutils

LINE = 64
"""Bytes that memory hands over at once."""
REGISTER = 32
"""Bytes that one instruction multiplies, where there is AVX; elsewhere it takes two."""
_FREE = ("contract", "nsz")


def fetch(builder, place):
    """Ask for the line of a place in memory, and do not wait."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
    )
    read, keep, data = (ir.Constant(number, code) for code in (0, 3, 1))
    builder.call(function, [builder.bitcast(place, byte), read, keep, data])


class Registers:
    """Writes instructions on registers of numbers of one precision, at the place where a builder stands."""

    def __init__(self, context, builder, dtype):
        self.context, self.builder, self.dtype = context, builder, dtype
        self.real = context.get_value_type(dtype)
        self.lanes = REGISTER * 8 // dtype.bitwidth
        self.vector = ir.VectorType(self.real, self.lanes)

    def number(self, i):
        """A constant index."""
        return ir.Constant(self.context.get_value_type(types.intp), i)

    def array(self, form, value):
        """The parts of an array: data, shape and so on."""
        return self.context.make_array(form)(self.context, self.builder, value)

    @contextmanager
    def steps(self, start, stop, by):
        """for j in range(start, stop, by)."""
        with cgutils.for_range_slice(self.builder, start, stop, self.number(by)) as (j, _):
            yield j

    def by_cases(self, n, most, write):
        """write(1), …, write(most), of which only write(n) is run."""
        done = self.builder.append_basic_block()
        cases = self.builder.switch(n, done)
        for count in range(1, most + 1):
            case = self.builder.append_basic_block()
            cases.add_case(self.number(count), case)
            self.builder.position_at_end(case)
            write(count)
            self.builder.branch(done)
        self.builder.position_at_end(done)

    def load(self, place, dtype, count=1):
        """So many numbers from a place in memory, in the precision of the registers."""
        raw, wide = self.context.get_value_type(dtype), self.real
        if count > 1:
            raw, wide = ir.VectorType(raw, count), ir.VectorType(wide, count)
        found = self.builder.load(self.builder.bitcast(place, raw.as_pointer()))
        found.align = dtype.bitwidth // 8
        if isinstance(dtype, types.Integer):
            return self.builder.uitofp(found, wide)
        if raw == wide:
            return found
        return (self.builder.fpext if dtype.bitwidth < self.dtype.bitwidth else self.builder.fptrunc)(found, wide)

    def spread(self, value):
        """One number in every lane."""
        one = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, one, everywhere)

    def total(self, value=None):
        """A variable, zero in every lane or with a value."""
        zero = ir.Constant(self.vector, [0.0] * self.lanes)
        return cgutils.alloca_once_value(self.builder, zero if value is None else value)

    def multiply_add(self, total, a, b):
        """total += a·b."""
        term = self.builder.fmul(a, b, flags=_FREE)
        self.builder.store(self.builder.fadd(self.builder.load(total), term, flags=_FREE), total)

    def sum(self, totals):
        """The sum of variables, lane by lane."""
        return reduce(self.builder.fadd, map(self.builder.load, totals))

    def sum_lanes(self, totals):
        """The sum of all lanes of variables."""
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(self.real, [self.real, self.vector]),
            f"llvm.vector.reduce.fadd.v{self.lanes}f{self.dtype.bitwidth}",
        )
        nothing = ir.Constant(self.real, -0.0)
        return self.builder.call(function, [nothing, self.sum(totals)], fastmath=("reassoc", *_FREE))
