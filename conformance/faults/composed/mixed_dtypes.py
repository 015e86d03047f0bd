"""Faults of 16-bit data with parameters in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy.operators.composed import Composed
from ....adapters.numpy.operators.mhc import Mhc
from ..mixed_dtypes import AsParameters, MixedGradientAsX, MixedOutputAsParameters, MixedParametersNarrowed
from ..registry import SIXTEEN_BIT, fault

Array = np.ndarray

fault("mixed-parameters-narrowed", pr="CM-D1", po="CM-D1", kind="dtype", dtypes=SIXTEEN_BIT)(MixedParametersNarrowed)


@fault("mixed-logits-narrowed", mh="CM-D1", kind="dtype", dtypes=SIXTEEN_BIT)
class MixedLogitsNarrowed(Mhc):
    """Rounds float32 logits to the dtype of x."""

    def before(self, stage: str, arrays: tuple[Any, ...]) -> None:
        self.narrow = arrays[0].dtype

    def weights(self, logits: Array) -> Array:
        return super().weights(logits.astype(self.narrow).astype(logits.dtype))


fault(
    "mixed-output-as-parameters", pr="CM-D2", po="CM-D2", mh="CM-D2", kind="dtype", dtypes=SIXTEEN_BIT
)(MixedOutputAsParameters)  # fmt: skip


@fault("mixed-parts-handed-as-parameters", pr="CM-D2", po="CM-D2", mh="CM-D2", kind="dtype", dtypes=SIXTEEN_BIT)
class MixedPartsHandedAsParameters(AsParameters, Composed):
    """Hands parts a copy in the dtype of the parameters."""

    roles = ()

    def value(self, part: Any, x: Array, role: str) -> Array:
        return super().value(part, x.astype(self.held), role)


fault("mixed-gradient-as-x", pr="CM-D3", po="CM-D3", mh="CM-D3", kind="dtype", dtypes=SIXTEEN_BIT)(MixedGradientAsX)
