"""
Groups as rows of a matrix: what LayerNorm and BatchNorm share.

For one group, d = x - mean, r = (var + eps)^(-1/2), xhat = d r, h = gamma g, and P z = z - mean(z) - xhat mean(z xhat):

    y = gamma xhat + beta        dx = r P h        ty = gamma r P tx + tgamma xhat + tbeta

The second order is derived from these by the product rule, with d(xhat) = r P dx and d(r) = -r^2 mean(xhat dx).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Rows:
    """How an array lies as a matrix of groups by elements, and the way back."""

    #: The axes that a group extends over, and the shape with those axes last.
    axes: tuple[int, ...]
    moved: tuple[int, ...]
    #: The dtype to compute in.
    work: np.dtype

    @classmethod
    def of(cls, x: Array, axes: tuple[int, ...]) -> Rows:
        kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
        moved = tuple(x.shape[axis] for axis in kept + axes)
        return cls(axes, moved, np.result_type(x.dtype, np.float32))

    def matrix(self, array: Array) -> Array:
        """Groups in rows, contiguous, so that NumPy sums each of them pairwise."""
        last = tuple(range(-len(self.axes), 0))
        groups = self.moved[: len(self.moved) - len(self.axes)]
        moved = np.moveaxis(array, self.axes, last)
        return np.ascontiguousarray(moved, dtype=self.work).reshape(_count(groups), _count(moved.shape[len(groups) :]))

    def array(self, matrix: Array, like: Array) -> Array:
        """The matrix laid out as the array, in its dtype."""
        last = tuple(range(-len(self.axes), 0))
        return np.ascontiguousarray(np.moveaxis(matrix.reshape(self.moved), last, self.axes), dtype=like.dtype)


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def statistics(x: Array) -> tuple[Array, Array, Array]:
    """
    Mean, deviations and biased variance of each row; two passes, so that a large mean costs no digits.

    Squares are formed in float64, where those of float32 data cannot overflow.
    """
    mean = x.mean(axis=1, keepdims=True)
    d = x - mean
    return mean, d, np.square(d, dtype=np.float64).mean(axis=1, keepdims=True)


def rsqrt(variance: Array, eps: float) -> Array:
    """(variance + eps)^(-1/2) in float64, which holds every eps as given; it is one number a group."""
    return 1.0 / np.sqrt(variance.astype(np.float64) + eps)


def scaled(d: Array, r: Array) -> Array:
    """d r, formed in float64 because r of a nearly constant group may lie beyond float32."""
    return (d * r).astype(d.dtype)


def _mean(z: Array) -> Array:
    return z.mean(axis=1, keepdims=True)


def _projected(z: Array, xhat: Array, *, constants: bool) -> Array:
    """P z; or z itself where mean and variance are constants, as in BatchNorm's inference."""
    return z if constants else z - _mean(z) - xhat * _mean(z * xhat)


@dataclass(frozen=True)
class Affine:
    """gamma or beta beside a matrix: one entry a column (LayerNorm) or one a row (BatchNorm)."""

    #: Axis of the matrix that a gradient is summed over: 0 for one entry a column, 1 for one a row.
    summed: int
    work: np.dtype

    def matrix(self, parameter: Array | None, default: float) -> Array:
        if parameter is None:
            return np.full((1, 1), default, self.work)
        return np.expand_dims(parameter.reshape(-1).astype(self.work), self.summed)

    def total(self, matrix: Array, parameter: Array | None) -> Array | None:
        """The sum that is the gradient of the parameter."""
        if parameter is None:
            return None
        return matrix.sum(axis=self.summed).reshape(parameter.shape).astype(parameter.dtype)


@dataclass(frozen=True)
class Group:
    """Everything that the derivatives share."""

    rows: Rows
    affine: Affine
    xhat: Array
    r: Array
    gamma: Array
    #: Whether mean and variance are constants.
    constants: bool

    def vjp(self, x: Array, gamma: Array | None, beta: Array | None, g: Array):
        gm = self.rows.matrix(g)
        dx = scaled(_projected(self.gamma * gm, self.xhat, constants=self.constants), self.r)
        return (
            self.rows.array(dx, x),
            self.affine.total(gm * self.xhat, gamma),
            self.affine.total(gm, beta),
        )

    def jvp(self, x: Array, tx: Array, tgamma: Array | None, tbeta: Array | None) -> Array:
        moved = scaled(_projected(self.rows.matrix(tx), self.xhat, constants=self.constants), self.r)
        ty = self.gamma * moved + self.affine.matrix(tgamma, 0.0) * self.xhat + self.affine.matrix(tbeta, 0.0)
        return self.rows.array(ty, x)

    def jvp_jvp(self, x: Array, tx: Array, tgamma: Array | None, sx: Array, sgamma: Array | None) -> Array:
        tm, sm, xhat = self.rows.matrix(tx), self.rows.matrix(sx), self.xhat
        pt = _projected(tm, xhat, constants=self.constants)
        ps = _projected(sm, xhat, constants=self.constants)
        moved = self.affine.matrix(tgamma, 0.0) * scaled(ps, self.r) + self.affine.matrix(sgamma, 0.0) * scaled(
            pt, self.r
        )
        if not self.constants:
            bent = xhat * _mean(tm * ps) + _mean(tm * xhat) * ps + _mean(sm * xhat) * pt
            moved = moved - self.gamma * scaled(bent, self.r * self.r)
        return self.rows.array(moved, x)

    def vjp_vjp(self, x: Array, gamma: Array | None, g: Array, a: Array, b: Array | None, c: Array | None):
        gm, am, xhat = self.rows.matrix(g), self.rows.matrix(a), self.xhat
        bm, cm = self.affine.matrix(b, 0.0), self.affine.matrix(c, 0.0)
        h = self.gamma * gm
        moved = _projected(am, xhat, constants=self.constants)
        g_bar = self.gamma * scaled(moved, self.r) + bm * xhat + cm
        gamma_bar = self.affine.total(gm * scaled(moved, self.r), gamma)
        x_bar = scaled(_projected(bm * gm, xhat, constants=self.constants), self.r)
        if not self.constants:
            ph = _projected(h, xhat, constants=False)
            bent = xhat * _mean(h * moved) + _mean(am * xhat) * ph + _mean(h * xhat) * moved
            x_bar = x_bar - scaled(bent, self.r * self.r)
        return self.rows.array(x_bar, x), gamma_bar, self.rows.array(g_bar, g)
