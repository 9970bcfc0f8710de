"""Ahead of time: ask memory for the next round's example while this round is computed."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from fliptron.arrays import Csr, Scaled
from fliptron.kernels.compiling import STEP, compiled
from fliptron.kernels.rows import kind

LARGE = 2**21
"""Bytes beyond which rows drawn at random are seldom in the cache. Asking for images makes a round 1.2 times faster;
asking for what is there already makes it slower."""
_LINE = 64


@intrinsic
def _prefetch(context, array, i):
    """Ask for the cache line of array[i]; one dimension."""

    def generate(context, builder, signature, arguments):
        form = signature.args[0]
        view = context.make_array(form)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, form, view, [arguments[1]], wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
        )
        read, keep, data = (ir.Constant(number, code) for code in (0, 3, 1))
        builder.call(function, [builder.bitcast(place, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@compiled(**STEP)
def _ask(values):
    for i in range(0, values.shape[0], _LINE // values.itemsize):
        _prefetch(values, i)  # type: ignore[call-arg]


def ask_for(X, i):
    """Have row i of X on its way; a matter of time only."""


def large(X):
    """Whether X is so large that asking pays."""
    rows = X.rows if isinstance(X, Scaled) else X
    return (rows.data if isinstance(rows, Csr) else rows).nbytes > LARGE


@overload(ask_for, jit_options=STEP)
def _(X, i):
    return {Scaled: lambda X, i: ask_for(X.rows, i), Csr: _ask_sparse}.get(kind(X), lambda X, i: _ask(X[i]))


def _ask_sparse(X, i):
    start, stop = X.indptr[i], X.indptr[i + 1]
    _ask(X.indices[start:stop])
    _ask(X.data[start:stop])


@overload(large, jit_options=STEP)
def _(X):
    forms = {Scaled: lambda X: large(X.rows), Csr: lambda X: X.data.nbytes > LARGE}
    return forms.get(kind(X), lambda X: X.nbytes > LARGE)
