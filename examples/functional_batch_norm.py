"""PyTorch's own batch_norm in a plain wrapper, which says what the function underneath refuses and gets wrong.

Check:        normspec check examples/functional_batch_norm.py:batch_norm --op batch_norm --convention storage=H2 --convention running_variance=bessel --convention single_value=error
Verdict:      conforms (exit status 0)
Conventions:  storage=H2, running_variance=bessel, single_value=error

`torch.nn.functional.batch_norm` refuses eps = 0 in training: `batch_norm_accepts` declines such calls, and the verdict
says which share of the cases is left. Its backward pass reads a strided weight as if it were contiguous, and it is
wrong where a tangent is differentiated: `batch_norm_expected` names that, and the report says `deviates`. The three conventions are PyTorch's.
"""  # noqa: E501 - a command is one line

import torch.nn.functional as F


def batch_norm(x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
    """BatchNorm by PyTorch, on clones of the running statistics, which it updates in place."""
    mean, var = running_mean.clone(), running_var.clone()
    y = F.batch_norm(x.movedim(channel_axis, 1), mean, var, gamma, beta, training, momentum, eps)
    return y.movedim(1, channel_axis), mean, var


def batch_norm_accepts(shape, settings):
    """Why a call is declined; None where it is not."""
    return "PyTorch asks for eps > 0" if settings["training"] and settings["eps"] == 0 else None


batch_norm_expected = {
    "CM-V3": "on the CPU the backward pass reads a strided weight as if it were contiguous",
    "BN-G14": "a tangent's gradient takes the statistics for constants (pytorch#196699)",
    "BN-G15": "a tangent's tangent takes the statistics for constants (pytorch#196699)",
}
