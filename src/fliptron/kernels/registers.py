"""Registers: vector instructions written out, where the compiler's own choice is slower."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

LINE = 64
"""Bytes that memory hands over at once."""
REGISTER = 32
"""Bytes that one instruction multiplies, where there is AVX; elsewhere it takes two."""
_FREE = ("contract", "nsz")


def fetch(builder: Any, place: Any) -> None:
    """Ask for the line of a place in memory, and do not wait."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
    )
    read, keep, data = (ir.Constant(number, code) for code in (0, 3, 1))
    builder.call(function, [builder.bitcast(place, byte), read, keep, data])


class Registers:
    """Writes instructions on registers of numbers of one precision, at the place where a builder stands."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.context, self.builder, self.dtype = context, builder, dtype
        self.real = context.get_value_type(dtype)
        self.lanes = REGISTER * 8 // dtype.bitwidth
        self.vector = ir.VectorType(self.real, self.lanes)

    def number(self, i: int) -> Any:
        """A constant index."""
        return ir.Constant(self.context.get_value_type(types.intp), i)

    def array(self, form: Any, value: Any) -> Any:
        """The parts of an array: data, shape and so on."""
        return self.context.make_array(form)(self.context, self.builder, value)

    @contextmanager
    def steps(self, start: Any, stop: Any, by: int) -> Iterator[Any]:
        """for j in range(start, stop, by)."""
        with cgutils.for_range_slice(self.builder, start, stop, self.number(by)) as (j, _):
            yield j

    def by_cases(self, n: int, most: Any, write: Any) -> None:
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

    def load(self, place: Any, dtype: Any, count: Any = 1) -> Any:
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

    def spread(self, value: Any) -> Any:
        """One number in every lane."""
        one = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, one, everywhere)

    def total(self, value: Any = None) -> Any:
        """A variable, zero in every lane or with a value."""
        zero = ir.Constant(self.vector, [0.0] * self.lanes)
        return cgutils.alloca_once_value(self.builder, zero if value is None else value)

    def multiply_add(self, total: Any, a: float, b: Any) -> None:
        """total += a·b."""
        term = self.builder.fmul(a, b, flags=_FREE)
        self.builder.store(self.builder.fadd(self.builder.load(total), term, flags=_FREE), total)

    def sum(self, totals: Any) -> Any:
        """The sum of variables, lane by lane."""
        return reduce(self.builder.fadd, map(self.builder.load, totals))

    def sum_lanes(self, totals: Any) -> Any:
        """The sum of all lanes of variables."""
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(self.real, [self.real, self.vector]),
            f"llvm.vector.reduce.fadd.v{self.lanes}f{self.dtype.bitwidth}",
        )
        nothing = ir.Constant(self.real, -0.0)
        return self.builder.call(function, [nothing, self.sum(totals)], fastmath=("reassoc", *_FREE))
