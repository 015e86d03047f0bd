"""Faults of 16-bit data with parameters and running statistics in float32."""

from __future__ import annotations

import numpy as np

from ...adapters.numpy.operators.batch_norm import BatchNorm
from ...adapters.numpy.operators.groups import Groups
from ...adapters.numpy.operators.staged import Arrays, Staged
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
