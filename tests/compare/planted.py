"""Plain normalisations on NumPy arrays, and for each row of the table the same with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np

from normspec.adapters.binding import DERIVATIVES, Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.numpy.operators.batch_norm import BatchNorm
from normspec.adapters.numpy.operators.group_norm import GroupNorm, InstanceNorm
from normspec.adapters.numpy.operators.layer_norm import LayerNorm
from normspec.adapters.numpy.operators.rms_norm import RmsNorm
from normspec.adapters.numpy.operators.rows import RowSteps, Statistics
from normspec.adapters.target import Target
from normspec.conformance.sound.sums import sequential_sum
from normspec.spec.operators import OPERATORS

BASES = {base.operator: base for base in (LayerNorm, BatchNorm, RmsNorm, GroupNorm, InstanceNorm)}
#: Those that subtract the mean.
CENTRED = ("layer_norm", "batch_norm", "group_norm", "instance_norm")
FLOAT16, BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)


class Plain(RowSteps):
    """The sound steps, which know the stage that they are part of."""

    #: The eps of a call without one.
    default_eps = 1e-5
    default_momentum = 0.1
    #: The derivatives of the function.
    derivatives = DERIVATIVES
    stage = "call"

    def before(self, stage, arrays):
        """Note the stage."""
        self.stage = stage


#: (row, operators, class) of each change.
PLANTED: list[tuple[str, tuple[str, ...], type]] = []


def planted(row: str, *operators: str) -> Callable[[type], type]:
    """Enter a class of changed steps; the row, and no other, must show it."""

    def enter(change: type) -> type:
        PLANTED.append((row, operators or tuple(BASES), change))
        return change

    return enter


def target(operator: str, change: type = Plain, name: str = "plain") -> Target:
    """The operator with these steps, as a target of one function."""
    made = type(change.__name__, (change, BASES[operator]), {})()
    implementation = made.implementation()
    call = implementation.call

    def defaults(*tensors, **settings):
        if OPERATORS[operator].statistics:
            settings["momentum"] = made.default_momentum
        return call(*tensors, eps=made.default_eps, **settings)

    derivatives: Mapping[str, Callable] = {key: getattr(implementation, key) for key in made.derivatives}
    binding = Binding(operator, name, call, derivatives, defaults=defaults)
    return Target(name, "numpy", np.__version__, BRIDGE, (binding,))


# eps ------------------------------------------------------------------------------------------------------


@planted("default_eps")
class AnotherDefault(Plain):
    """The default eps is 1e-3."""

    default_eps = 1e-3


@planted("eps_placement")
class OnTheDeviation(Plain):
    """eps is added to the standard deviation."""

    def rstd(self, variance, eps):
        """1 / (std + eps)."""
        return 1 / (np.sqrt(variance) + eps)


@planted("eps_effective")
class AtLeast(Plain):
    """An eps about 1e-8 is taken for 1e-6."""

    def rstd(self, variance, eps):
        """With 1e-6 in its place."""
        return super().rstd(variance, eps.dtype.type(1e-6) if 1e-9 < eps < 1e-7 else eps)


@planted("eps_float32")
class HeldInFloat32(Plain):
    """eps goes through float32."""

    def rstd(self, variance, eps):
        """With the float32 next to eps."""
        return super().rstd(variance, eps.dtype.type(np.float32(eps)))


@planted("eps_zero")
class NeverZero(Plain):
    """An eps of zero becomes 1e-5."""

    def rstd(self, variance, eps):
        """With 1e-5 where eps is zero."""
        return super().rstd(variance, eps if eps > 0 else eps.dtype.type(1e-5))


# The variance -----------------------------------------------------------------------------------------------


@planted("mean_square", "rms_norm")
@planted("variance", *CENTRED)
class Unbiased(Plain):
    """The variance is divided by n - 1, in the gradient too; the running one stays biased."""

    def moments(self, x):
        """The mean and the unbiased variance."""
        mean, variance = super().moments(x)
        n = x.shape[1]
        return mean, variance * x.dtype.type(n / max(n - 1, 1))

    def project(self, z, xhat, s: Statistics):
        """With n - 1 under the sum that goes with xhat."""
        if s.fixed:
            return z
        n = z.shape[1]
        return self.centre(z) - xhat * (self.row_sum(z * xhat) / z.dtype.type(max(n - 1, 1)))

    def contributed_variance(self, variance, count, eps):
        """The biased one."""
        return variance * variance.dtype.type((count - 1) / count if count > 1 else 1)


def one_pass(x):
    """The mean, and the mean of the squares less its square, never negative."""
    mean = np.add.reduce(x, axis=1, keepdims=True) / x.dtype.type(x.shape[1])
    squares = np.add.reduce(x * x, axis=1, keepdims=True) / x.dtype.type(x.shape[1])
    return mean, np.maximum(squares - mean * mean, 0)


@planted("accuracy", *CENTRED)
class OnePass(Plain):
    """The variance of the forward pass is formed in one pass."""

    def moments(self, x):
        """In one pass where y is computed."""
        return one_pass(x) if self.stage == "call" else super().moments(x)


@planted("accuracy_gradients", *CENTRED)
class OnePassBackward(Plain):
    """The variance of the backward pass is formed in one pass."""

    def moments(self, x):
        """In one pass where gradients are computed."""
        return one_pass(x) if self.stage == "vjp" else super().moments(x)


def _rough(stage: str) -> type:
    class Rough(Plain):
        def rstd(self, variance, eps):
            """Off by some roundings of float32."""
            rstd = super().rstd(variance, eps)
            off = self.data == np.float32 and self.stage == stage
            # More than seven values can round, and less than moves an eps that is solved for.
            return rstd * rstd.dtype.type(1 + 1.5 * 2.0**-20) if off else rstd

    return Rough


planted("accuracy", "rms_norm")(_rough("call"))
planted("accuracy_gradients", "rms_norm")(_rough("vjp"))


# The gain ---------------------------------------------------------------------------------------------------


@planted("gain")
class OnePlus(Plain):
    """The value passed for gamma is the gain less 1."""

    def parameter(self, array, role):
        """With 1 added to gamma."""
        value = super().parameter(array, role)
        return value + value.dtype.type(1) if role == "gamma" and value is not None else value


@planted("affine", *CENTRED)
class ShiftedFirst(Plain):
    """A beta of 3 is added before the gain."""

    def output(self, x, s, gamma, beta):
        """gamma (xhat + 3)."""
        first = beta is not None and gamma is not None and bool(np.all(beta == 3))
        return super().output(x, s, gamma, beta * gamma if first else beta)


# Running statistics -------------------------------------------------------------------------------------------


@planted("momentum", "batch_norm")
class WeighsTheOld(Plain):
    """Momentum is the weight of the old statistic."""

    default_momentum = 0.9

    def updated(self, old, new, momentum):
        """With the weights exchanged."""
        return super().updated(old, new, 1 - momentum)


@planted("default_momentum", "batch_norm")
class AnotherMomentum(Plain):
    """The default momentum is 0.01."""

    default_momentum = 0.01


@planted("running_variance", "batch_norm")
class Bessel(Plain):
    """The running variance averages the unbiased one."""

    def contributed_variance(self, variance, count, eps):
        """The unbiased one."""
        return variance * variance.dtype.type(count / max(count - 1, 1))


# Axes -------------------------------------------------------------------------------------------------------


@planted("axes", "layer_norm", "rms_norm")
class LastAxisAlone(Plain):
    """Of several axes only the last is normalised."""

    def call(self, x, gamma, *beta, eps, axes):
        """Normalise over the last axis, whatever the axes."""
        if len(axes) == 1:
            return super().call(x, gamma, *beta, eps=eps, axes=axes)
        y = super().call(x, None, *(None for _ in beta), eps=eps, axes=(-1,))
        return sum(beta, y * gamma).astype(x.dtype)


@planted("channel_axis", "batch_norm")
class SamplesAlone(Plain):
    """Of an array with more than two axes, only the samples are normalised over, not the places."""

    def call(self, x, gamma, beta, running_mean, running_var, **settings):
        """Place by place, where there are places."""
        if x.ndim == 2:
            return super().call(x, gamma, beta, running_mean, running_var, **settings)
        moved = np.moveaxis(x, settings["channel_axis"], 1)
        columns = moved.reshape(x.shape[0], -1)
        places = columns.shape[1] // gamma.size
        rest = [np.repeat(v, places) for v in (gamma, beta, running_mean, running_var)]
        y, mean, var = super().call(columns, *rest, **{**settings, "channel_axis": 1})
        y = np.moveaxis(y.reshape(moved.shape), 1, settings["channel_axis"])
        return np.ascontiguousarray(y), mean[::places].copy(), var[::places].copy()


@planted("channel_axis", "group_norm", "instance_norm")
class PlaceByPlace(Plain):
    """Where the channels are last, each position is normalised separately."""

    def call(self, x, gamma, beta, *, channel_axis, **settings):
        """As if each position were a sample."""
        if channel_axis != -1:
            return super().call(x, gamma, beta, channel_axis=channel_axis, **settings)
        y = super().call(x.reshape(-1, x.shape[-1], 1), gamma, beta, channel_axis=1, **settings)
        return y.reshape(x.shape)


@planted("channels", "group_norm")
class Interleaved(Plain):
    """Channel c is of group c mod G."""

    def call(self, x, gamma, beta, *, groups, channel_axis, **settings):
        """With the channels sorted by their group."""
        channels = x.shape[channel_axis]
        order = np.arange(channels).reshape(-1, groups).T.ravel()
        sorted_x = np.take(x, order, axis=channel_axis)
        y = super().call(sorted_x, gamma[order], beta[order], groups=groups, channel_axis=channel_axis, **settings)
        return np.take(y, np.argsort(order), axis=channel_axis)


# 16 bits ------------------------------------------------------------------------------------------------------


def _rounding(dtype: np.dtype, stage: str) -> type:
    class Rounding(Plain):
        def normalise(self, x, s):
            xhat = super().normalise(x, s)
            return xhat.astype(dtype).astype(self.work) if self.data == dtype and self.stage == stage else xhat

    return Rounding


planted("float16")(_rounding(FLOAT16, "call"))
planted("float16_gradients")(_rounding(FLOAT16, "vjp"))
planted("bfloat16")(_rounding(BFLOAT16, "call"))
planted("bfloat16_gradients")(_rounding(BFLOAT16, "vjp"))


# Groups without variance, and none at all ---------------------------------------------------------------------


@planted("constant", *CENTRED)
class ExactWhereConstant(Plain):
    """The mean of a constant group is its value, to the last bit."""

    def normalise(self, x, s):
        """About the first value, where all are alike."""
        if not x.shape[1]:
            return super().normalise(x, s)
        alike = (x == x[:, :1]).all(axis=1, keepdims=True)
        return (x - np.where(alike & (not s.fixed), x[:, :1], s.mean)) * s.rstd


@planted("single", *CENTRED)
class NothingToDivideBy(Plain):
    """A group of one value gives NaN."""

    def output(self, x, s, gamma, beta):
        """NaN for groups of one value."""
        y = super().output(x, s, gamma, beta)
        return np.full_like(y, np.nan) if x.shape[1] == 1 and not s.fixed else y


@planted("empty")
class RefusesNothing(Plain):
    """An empty batch is an error."""

    def before(self, stage, arrays):
        """Look at x first."""
        super().before(stage, arrays)
        if not arrays[0].size:
            raise ValueError("no samples")


# NaN, infinity, subnormal numbers -----------------------------------------------------------------------------


def _replacing(where: Callable) -> type:
    class Replacing(Plain):
        def read(self, array, role):
            values = super().read(array, role)
            return np.where(where(values), values.dtype.type(0), values) if role == "x" else values

    return Replacing


planted("nan")(_replacing(np.isnan))
planted("inf")(_replacing(np.isinf))
planted("subnormal_inputs")(_replacing(lambda v: np.abs(v) < np.finfo(v.dtype).smallest_normal))


@planted("subnormal_outputs")
class Flushed(Plain):
    """Subnormal results become zero."""

    def write(self, array, shape, dtype, role):
        """Without what the dtype has no normal number for."""
        least = float(ml_dtypes.finfo(dtype).smallest_normal)
        return super().write(np.where(np.abs(array) < least, array.dtype.type(0), array), shape, dtype, role)


# The same bits ------------------------------------------------------------------------------------------------


@planted("determinism")
class OnceInFifty(Plain):
    """One call in fifty differs in one bit."""

    calls = 0

    def output(self, x, s, gamma, beta):
        """With the last bit of the largest value flipped, now and then."""
        y = super().output(x, s, gamma, beta)
        self.calls += self.stage == "call"
        if self.stage == "call" and self.calls % 50 == 0 and y.size:
            place = np.unravel_index(np.argmax(np.abs(y)), y.shape)
            y[place] = np.nextafter(y[place], y.dtype.type(0))
        return y


@planted("batch_invariance")
class AnotherOrderAlone(Plain):
    """A single sample is summed one value after the other; with given statistics its affine map is folded."""

    def row_sum(self, terms):
        """In order where there is one sample."""
        if self.shape[0] == 1 and terms.shape[1] > 1:
            return sequential_sum(terms)
        return super().row_sum(terms)

    def output(self, x, s, gamma, beta):
        """Folded where statistics are given and there is one value."""
        if s.fixed and x.shape[1] == 1:
            return x * (gamma * s.rstd) + (beta - s.mean * (gamma * s.rstd))
        return super().output(x, s, gamma, beta)


@planted("layouts")
class RoundsViews(Plain):
    """A view that is not contiguous gives another last bit."""

    def before(self, stage, arrays):
        """Look at the memory layout of x."""
        super().before(stage, arrays)
        self.whole = arrays[0].flags.c_contiguous

    def output(self, x, s, gamma, beta):
        """With every value moved by its last bit."""
        y = super().output(x, s, gamma, beta)
        return y if self.whole else np.nextafter(y, y.dtype.type(0))


# Derivatives --------------------------------------------------------------------------------------------------


@planted("gradients")
class NoGradients(Plain):
    """There is no vjp."""

    derivatives = tuple(one for one in DERIVATIVES if one != "vjp")


@planted("second_order")
class FirstOrderAlone(Plain):
    """There is no vjp of the vjp."""

    derivatives = tuple(one for one in DERIVATIVES if one != "vjp_vjp")


@planted("forward_mode")
class NoForwardMode(Plain):
    """There is no jvp."""

    derivatives = tuple(one for one in DERIVATIVES if one != "jvp")


@planted("nested")
class NoForwardOverForward(Plain):
    """There is no jvp of the jvp."""

    derivatives = tuple(one for one in DERIVATIVES if one != "jvp_jvp")
