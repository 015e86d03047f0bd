"""The gradient of a highway layer in NumPy: written out in full, and as derivations print it.

Check:        normspec check examples/highway_gradient.py:highway --op highway
Verdict:      conforms (exit status 0)
Unsupported:  HW-G7, HW-G8, HW-G9, HW-G10, HW-G11
Conventions:  none

Check:        normspec check examples/highway_gradient.py:highway_as_printed --op highway
Verdict:      does not conform (exit status 1)
Violates:     HW-G3, HW-G4, HW-G5, HW-G6 among others
Unsupported:  HW-G7, HW-G8, HW-G9, HW-G10, HW-G11
Conventions:  none

"dy/dx = T dH/dx + (1 - T)" holds for a gate that does not depend on x, and the gate does: the term (H - x) dT/dx is
missing. Without it the gate's own weights get no gradient, and the layer never learns when to open.

In NumPy the parts that a check hands over know their derivative: `gate.vjp(x, dz)` is what a cotangent dz of
`gate(x)` makes of a cotangent of x.
"""

import numpy as np


def highway(x, transform, gate, *, carry=None):
    """transform(x) * t + x * c."""
    h = wide(transform(x))
    t, c, _ = gates(x, gate, carry)
    return (h * t + wide(x) * c).astype(x.dtype)


def highway_vjp(x, transform, gate, g, *, carry=None):
    """All four ways in which x moves y: itself, the transform, the gate and the carry gate."""
    h = wide(transform(x))
    t, c, slopes = gates(x, gate, carry)
    dx = wide(g) * c + pulled(transform, x, wide(g) * t)
    if carry is None:
        dx = dx + pulled(gate, x, wide(g) * (h - wide(x)) * slopes[0])
    else:
        dx = dx + pulled(gate, x, wide(g) * h * slopes[0]) + pulled(carry, x, wide(g) * wide(x) * slopes[1])
    return (dx.astype(x.dtype),)


def highway_as_printed(x, transform, gate, *, carry=None):
    """The same values."""
    return highway(x, transform, gate, carry=carry)


def highway_as_printed_vjp(x, transform, gate, g, *, carry=None):
    """Only two of the ways: the gates count as constants."""
    t, c, _ = gates(x, gate, carry)
    dx = wide(g) * c + pulled(transform, x, wide(g) * t)
    return (dx.astype(x.dtype),)


def gates(x, gate, carry):
    """t, c and the derivative of each with respect to its logit."""
    t, rest = sigmoid(wide(gate(x)))
    if carry is None:
        return t, rest, (t * rest, None)
    c, other = sigmoid(wide(carry(x)))
    return t, c, (t * rest, c * other)


def sigmoid(z):
    """sigmoid(z) and 1 - sigmoid(z), both without overflow and without cancellation."""
    small = np.exp(-np.abs(z))
    large, small = 1 / (1 + small), small / (1 + small)
    return np.where(z >= 0, large, small), np.where(z >= 0, small, large)


def pulled(part, x, cotangent):
    """The cotangent of x by way of a part, which is handed its own in the dtype of x."""
    return wide(part.vjp(x, cotangent.astype(x.dtype)))


def wide(array):
    """The array in float32 at least."""
    return array.astype(np.promote_types(array.dtype, np.float32))
