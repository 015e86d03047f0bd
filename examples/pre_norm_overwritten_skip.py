"""A pre-norm block that forgets x: the name is used again for the normalised value, and the skip path carries that.

Check:        normspec check examples/pre_norm_overwritten_skip.py:pre_norm --op pre_norm --convention storage=H2
Verdict:      does not conform (exit status 1)
Violates:     PR-F1, PR-F2, PR-L1, PR-G1, PR-G5 among others
Conventions:  storage=H2

It trains, and looks like a pre-norm block in every shape. But nothing reaches the output unnormalised: with the
sublayer 0 it is LN(x) and not x, and the gradient of a deep stack passes through every norm.
"""

from torch.nn import functional


def pre_norm(x, sublayer, gamma, beta, *, eps):
    """LN(x) + sublayer(LN(x))."""
    x = functional.layer_norm(x, x.shape[-1:], gamma, beta, eps)
    return x + sublayer(x)
