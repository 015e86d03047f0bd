"""Faults of 16-bit data with parameters and running statistics in float32."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.staged import Arrays, Staged
from .layouts import read_on
from .neighbours import Prepared
from .registry import SIXTEEN_BIT, fault, issue

Array = np.ndarray


@fault(
    "running-statistics-narrowed", bn="CM-D1", kind="dtype", dtypes=SIXTEEN_BIT, sources=issue("pytorch/pytorch#61962")
)
class RunningStatisticsNarrowed(BatchNorm):
    """Rounds float32 running statistics to the dtype of x."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(array.astype(self.data) if role.startswith("running") else array, role)


@fault(
    "mixed-parameters-narrowed",
    ln="CM-D1",
    bn="CM-D1",
    kind="dtype",
    dtypes=SIXTEEN_BIT,
    sources=issue("openxla/xla#10875", "apple/coreai-torch#54"),
)
class MixedParametersNarrowed(Groups):
    """Rounds float32 gamma and beta to the dtype of x."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(array.astype(self.data) if role in ("gamma", "beta") else array, role)


@fault("mixed-gamma-of-two-axes-narrowed", ln="CM-D1", kind="dtype", dtypes=SIXTEEN_BIT, apart=("gn", "in"))
class MixedGammaOfTwoAxesNarrowed(Groups):
    """Rounds a float32 gamma of two axes to the dtype of x."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(array.astype(self.data) if role == "gamma" and array.ndim == 2 else array, role)


@fault("mixed-gradients-narrowed", ln="CM-D1", bn="CM-D1", kind="dtype", dtypes=SIXTEEN_BIT)
class MixedGradientsNarrowed(Groups):
    """Rounds the gradients of float32 gamma and beta to the dtype of x, and returns them in float32."""

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        return super().write(array.astype(self.data) if role in ("dgamma", "dbeta") else array, shape, dtype, role)


class AsParameters(Staged):
    """The base that returns some results in the dtype of the parameters, the widest that it is handed."""

    roles: tuple[str, ...]
    held: np.dtype

    def before(self, stage: str, arrays: Arrays) -> None:
        given = [array.dtype for array in arrays if isinstance(array, np.ndarray)]
        self.held = max(given, key=lambda dtype: dtype.itemsize)

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        return super().write(array, shape, self.held if role in self.roles else dtype, role)


@fault(
    "mixed-output-as-parameters",
    ln="CM-D2",
    bn="CM-D2",
    kind="dtype",
    dtypes=SIXTEEN_BIT,
    sources=issue("sonos/tract#2276"),
)
class MixedOutputAsParameters(AsParameters):
    """Returns y in the dtype of the parameters."""

    roles = ("y",)


@fault("mixed-dx-as-parameters", ln="CM-D2", bn="CM-D2", kind="dtype", dtypes=SIXTEEN_BIT)
class MixedDxAsParameters(AsParameters):
    """Returns dx in the dtype of the parameters."""

    roles = ("dx",)


class AsX(Staged):
    """The base that returns some results in the dtype of x."""

    roles: tuple[str, ...]

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        return super().write(array, shape, self.data if role in self.roles else dtype, role)


@fault("mixed-gradient-as-x", ln="CM-D3", bn="CM-D3", kind="dtype", dtypes=SIXTEEN_BIT)
class MixedGradientAsX(AsX):
    """Returns the gradients of parameters in the dtype of x."""

    roles = ("dgamma", "dbeta", "dlogits")


@fault("mixed-statistics-as-x", bn="CM-D3", kind="dtype", dtypes=SIXTEEN_BIT, sources=issue("onnx/onnx#3415"))
class MixedStatisticsAsX(AsX):
    """Returns the new running statistics in the dtype of x."""

    roles = ("running_mean", "running_var")


class BesideWide(Groups):
    """The base with a path of its own for 16-bit data with a float32 gamma."""

    wide = False

    def before(self, stage: str, arrays: Arrays) -> None:
        x, gamma = arrays[:2]
        self.wide = x is not None and gamma is not None and gamma.dtype != x.dtype


@fault("mixed-strides-ignored", ln="CM-V1", bn="CM-V1", kind="layout", dtypes=SIXTEEN_BIT)
class MixedStridesIgnored(BesideWide):
    """Reads x as if it were contiguous where gamma is wider."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "x" and self.wide else array, role)


@fault("mixed-gamma-strides-ignored", ln="CM-V3", bn="CM-V3", kind="layout", dtypes=SIXTEEN_BIT)
class MixedGammaStridesIgnored(BesideWide):
    """Reads a gamma that is wider than x as if it were contiguous."""

    def read(self, array: Array, role: str) -> Array:
        return super().read(read_on(array) if role == "gamma" and self.wide else array, role)


@fault("mixed-eps-of-first-call", ln="CM-P2", bn="CM-P2", kind="state", dtypes=SIXTEEN_BIT)
class MixedEpsOfFirstCall(BesideWide):
    """Keeps the eps of the first call with a gamma wider than x for all such calls."""

    eps: np.floating | None = None

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        if self.wide:
            self.eps = eps if self.eps is None else self.eps
            return super().rstd(variance, self.eps)
        return super().rstd(variance, eps)


@fault("mixed-eps-narrowed", ln="CM-D1", bn="CM-D1", kind="dtype", dtypes=SIXTEEN_BIT)
class MixedEpsNarrowed(BesideWide):
    """Rounds eps to the dtype of x where gamma is wider."""

    def rstd(self, variance: Array, eps: np.floating) -> Array:
        return super().rstd(variance, type(eps)(np.asarray(eps).astype(self.data)) if self.wide else eps)


@fault("mixed-raises-without-groups", ln="CM-S2", kind="size", dtypes=SIXTEEN_BIT)
class MixedRaisesWithoutGroups(BesideWide):
    """Raises an error where gamma is wider than x and there are no groups."""

    def before(self, stage: str, arrays: Arrays) -> None:
        super().before(stage, arrays)
        if self.wide and arrays[0] is not None and not arrays[0].size:
            raise ValueError("x is empty")


@fault("mixed-dgamma-narrowed-where-x-is-frozen", ln="LN-G11", bn="BN-G12", kind="dtype", dtypes=SIXTEEN_BIT)
class MixedDgammaNarrowedWhereXIsFrozen(Prepared, BesideWide):
    """Rounds dgamma to the dtype of x where gamma is wider and x needs no gradient."""

    def write(self, array: Array, shape: tuple[int, ...], dtype: np.dtype, role: str) -> Array:
        narrow = role == "dgamma" and self.wide and self.wrt is not None and "x" not in self.wrt
        return super().write(array.astype(self.data) if narrow else array, shape, dtype, role)
