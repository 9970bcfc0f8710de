"""Ahead of time: ask memory for the next round's example while this round is computed. A matter of time only."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from fliptron.arrays import Csr, Followed, Scaled, ScaledRow, SparseRow
from fliptron.kernels.compiling import STEP, compiled
from fliptron.kernels.rows import kind, row

LINE = 64
"""Bytes that memory hands over at once."""
LARGE = 2**21
"""Bytes of sparse rows that a cache seldom holds; asking for what is there already makes a round slower."""


def fetch(builder, place):
    """Write the instruction that asks for the line of a place in memory."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
    )
    read, keep, data = (ir.Constant(number, code) for code in (0, 3, 1))
    builder.call(function, [builder.bitcast(place, byte), read, keep, data])


@intrinsic
def _fetch(typing, array, i):
    """Ask for the line of array[i]; one dimension."""

    def generate(context, builder, signature, arguments):
        form = signature.args[0]
        view = context.make_array(form)(context, builder, arguments[0])
        fetch(builder, cgutils.get_item_pointer(context, builder, form, view, [arguments[1]], wraparound=False))
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@compiled(**STEP)
def _ask(values):
    for i in range(0, values.shape[0], LINE // values.itemsize):
        _fetch(values, i)  # type: ignore[call-arg]


def followed(X, i, k):
    """Example i, with example k on its way: a dense one is asked for while i is read, a sparse one now.

    Compiled, it borrows from X; only a loop that counts no references may hold it.
    """
    return row(X, i)


@overload(followed, jit_options=STEP)
def _(X, i, k):
    return {
        Scaled: lambda X, i, k: ScaledRow(followed(X.rows, i, k), X.scale[i]),
        Csr: _sparse_followed,
    }.get(kind(X), lambda X, i, k: Followed(X[i], X[k]))


def _sparse_followed(X, i, k):
    if X.data.nbytes > LARGE:
        start, stop = X.indptr[k], X.indptr[k + 1]
        _ask(X.indices[start:stop])
        _ask(X.data[start:stop])
    start, stop = X.indptr[i], X.indptr[i + 1]
    return SparseRow(X.indices[start:stop], X.data[start:stop])
