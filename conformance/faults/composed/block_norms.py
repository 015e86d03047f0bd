"""Faults of the LayerNorm within pre_norm and post_norm that it has on its own as well."""

from __future__ import annotations

from .. import affine, eps, gradients, second_order, variance
from ..registry import fault, issue

# The epsilon.
fault(
    "eps-on-std", pr="PR-F3", po="PO-F3", sources=issue("hkproj/pytorch-transformer#31", "tracel-ai/burn#2185")
)(eps.EpsOnStd)  # fmt: skip
fault("eps-missing", pr="PR-F3", po="PO-F3")(eps.EpsMissing)
fault("eps-tenfold", pr="PR-F6", po="PO-F6")(eps.EpsTenfold)
fault("eps-hardcoded", pr="PR-F6", po="PO-F6")(eps.EpsHardcoded)
fault("eps-float32", pr="PR-F6", po="PO-F6", kind="dtype", dtypes=("float64",))(eps.EpsFloat32)
fault("eps-after-prescale", pr="PR-L2", po="PO-L2")(eps.EpsAfterPrescale)

# The moments.
fault("unbiased-variance", pr="PR-F7", po="PO-F7")(variance.UnbiasedVarianceGuarded)
fault("one-pass-variance", pr="PR-F1", po="PO-F1")(variance.OnePassVarianceClamped)
fault("second-moment-for-variance", pr="PR-L3")(variance.SecondMomentForVariance)
fault("rms-norm", pr="PR-L3", po="PO-L1")(variance.RmsNorm)
fault("variance-over-padded-count", po="PO-L1")(variance.VarianceOverPaddedCount)
fault("constant-group-unnormalised", po="PO-F1")(variance.ConstantGroupUnnormalised)
fault("normalised-left", pr="PR-F1")(variance.NormalisedLeft)

# The affine step.
fault("gamma-ignored", pr="PR-F1", po="PO-F1")(affine.FixGamma)
fault("affine-order", pr="PR-F1", po="PO-F1")(affine.AffineOrder)
fault("affine-needs-both", pr="PR-F4", po="PO-F4", sources=issue("NVIDIA/recsys-examples#446"))(affine.AffineNeedsBoth)
fault("no-gamma-no-beta", pr="PR-F4", po="PO-F4")(affine.NoGammaNoBeta)

# Gradients.
fault("statistics-detached", pr="PR-G1", po="PO-G1", kind="gradient")(gradients.StatisticsDetached)
fault("dx-no-xhat", pr="PR-G1", po="PO-G1", kind="gradient")(gradients.DxNoXhat)
fault("dx-no-mean", pr="PR-G1", po="PO-G5", kind="gradient")(gradients.DxNoMean)
fault("dx-no-gamma", pr="PR-G1", po="PO-G4", kind="gradient")(gradients.DxNoGamma)
fault("dgamma-x", pr="PR-G2", po="PO-G2", kind="gradient")(gradients.DgammaX)
fault("dgamma-zero", pr="PR-G2", po="PO-G2", kind="gradient")(gradients.DgammaZero)
fault("dbeta-mean", pr="PR-G3", po="PO-G3", kind="gradient")(gradients.DbetaMean)
fault("double-backward-detached", pr="PR-G6", po="PO-G6", kind="second-order")(second_order.DoubleBackwardDetached)
fault("double-backward-no-parameters", pr="PR-G6", po="PO-G6", kind="second-order")(
    second_order.DoubleBackwardNoParameters
)
fault("jvp-detached", pr="PR-G7", po="PO-G7", kind="tangent")(second_order.JvpDetached)
fault("jvp-no-parameters", pr="PR-G7", po="PO-G7", kind="tangent")(second_order.JvpNoParameters)
fault("forward-over-reverse-detached", pr="PR-G8", po="PO-G8", kind="second-order")(
    second_order.ForwardOverReverseDetached
)
fault(
    "reverse-over-forward-detached",
    pr="PR-G9",
    po="PO-G9",
    kind="second-order",
    sources=issue("pytorch/pytorch#196700", "pytorch/pytorch#196699"),
)(second_order.ReverseOverForwardDetached)
fault(
    "forward-over-forward-detached",
    pr="PR-G10",
    po="PO-G10",
    kind="tangent",
    sources=issue("pytorch/pytorch#196700", "pytorch/pytorch#196699"),
)(second_order.ForwardOverForwardDetached)
