"""Products: several labels' weights with one dense example, written out as vector instructions.

The compiler's own vectors are as fast while everything is in the cache. Written out, one loop can ask memory for
the next example line by line between the multiplications; asked for at once, its hundred lines stand in the way of
the weights. At d = 784 a pass is 1.2 (float64) and 1.8 times faster (float32), at d = 64 up to 1.3 times.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic, overload

from fliptron.arrays import Followed
from fliptron.kernels.compiling import STEP
from fliptron.kernels.memory import LINE, fetch
from fliptron.kernels.rows import kind, scale, size, value

_REGISTER = 32  # bytes a vector instruction multiplies at once
_FREE = ("contract", "nsz")


def products(W, r, x, out, n):
    """out[r], …, out[r + n − 1] = w_r·x, …, w_(r+n−1)·x for a dense x and a number n known when compiling."""
    for k in range(r, r + n):
        out[k] = sum(W[k, j] * value(x, j) for j in range(size(x)))


@overload(products, jit_options=STEP)
def _(W, r, x, out, n):
    return lambda W, r, x, out, n: _products(W, r, x, W.dtype.type(scale(x)), out, n)  # type: ignore[call-arg]


@intrinsic(prefer_literal=True)
def _products(typing, W, r, x, factor, out, n):
    """Every label has one register of sums, its lanes added at the end; what is left of d is added number by number."""
    if not isinstance(n, types.IntegerLiteral):
        raise RequireLiteralValue("n")
    signature = types.void(W, types.intp, x, factor, out, types.intp)

    def generate(context, builder, signature, arguments):
        size_of = W.dtype.bitwidth // 8
        lanes, line = _REGISTER // size_of, LINE // size_of
        real, intp = context.get_value_type(W.dtype), context.get_value_type(types.intp)
        vector = ir.VectorType(real, lanes)

        def number(i):
            return ir.Constant(intp, i)

        def array(form, value):
            return context.make_array(form)(context, builder, value)

        def take(place, count, dtype):
            """Numbers from a place in memory, in the precision of W."""
            raw = context.get_value_type(dtype)
            raw, wide = (raw, real) if count == 1 else (ir.VectorType(raw, count), ir.VectorType(real, count))
            found = builder.load(builder.bitcast(place, raw.as_pointer()))
            found.align = dtype.bitwidth // 8
            if isinstance(dtype, types.Integer):
                return builder.uitofp(found, wide)
            if dtype.bitwidth == W.dtype.bitwidth:
                return found
            return (builder.fpext if dtype.bitwidth < W.dtype.bitwidth else builder.fptrunc)(found, wide)

        def accumulate(totals, j, count):
            """totals += w·x for features j, …, j + count − 1."""
            v = take(builder.gep(example, [j]), count, form.dtype)
            for total, label in zip(totals, labels, strict=True):
                term = builder.fmul(take(builder.gep(label, [j]), count, W.dtype), v, flags=_FREE)
                builder.store(builder.fadd(builder.load(total), term, flags=_FREE), total)

        weights, first, example, factor, _, _ = arguments
        form, after = x, None
        while kind(form) is not None:
            if kind(form) is Followed:
                after = array(form.types[1], builder.extract_value(example, 1)).data
            form, example = form.types[0], builder.extract_value(example, 0)
        example = array(form, example).data
        d = builder.extract_value(array(W, weights).shape, 1)
        whole = builder.and_(d, number(-line))
        labels = [
            builder.gep(array(W, weights).data, [builder.mul(builder.add(first, number(k)), d)])
            for k in range(n.literal_value)
        ]
        sums = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * lanes)) for _ in labels]
        with cgutils.for_range_slice(builder, number(0), whole, number(line)) as (j, _):
            if after is not None:
                fetch(builder, builder.gep(after, [j]))
            for part in range(0, line, lanes):
                accumulate(sums, builder.add(j, number(part)), lanes)

        add_lanes = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(real, [real, vector]),
            f"llvm.vector.reduce.fadd.v{lanes}f{W.dtype.bitwidth}",
        )
        totals = [
            cgutils.alloca_once_value(
                builder,
                builder.call(add_lanes, [ir.Constant(real, -0.0), builder.load(each)], fastmath=("reassoc", *_FREE)),
            )
            for each in sums
        ]
        with cgutils.for_range_slice(builder, whole, d, number(1)) as (j, _):
            accumulate(totals, j, 1)
        for k, total in enumerate(totals):
            place = builder.gep(array(out, arguments[4]).data, [builder.add(first, number(k))])
            told = context.cast(builder, builder.fmul(builder.load(total), factor), W.dtype, out.dtype)
            builder.store(told, place)
        return context.get_dummy_value()

    return signature, generate
