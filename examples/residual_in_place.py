"""A residual block that saves memory by adding in place, as many published ones do.

Check:        normspec check examples/residual_in_place.py:residual --op residual
Verdict:      does not conform (exit status 1)
Violates:     CM-C3, CM-C4, CM-C9, CM-P1, CM-T3 among others
Conventions:  none

`out += x` writes into what the branch returned. After a convolution and a normalisation nobody notices. After a tanh
PyTorch refuses the backward pass, which needs the value that was overwritten; and where the branch is an nn.Identity,
as in a pruned layer, x itself is overwritten.
"""

from torch import nn


class InPlaceResidualBlock(nn.Module):
    """activation(shortcut(x) + branch(x)), in the memory of the branch's result."""

    def __init__(self, branch, shortcut=None, activation=None):
        super().__init__()
        self.branch = branch
        self.shortcut = shortcut
        self.activation = activation

    def forward(self, x):
        out = self.branch(x)
        out += x if self.shortcut is None else self.shortcut(x)
        return out if self.activation is None else self.activation(out)


def residual(x, branch, *, shortcut=None, activation=None):
    """The class, as the function that is checked."""
    return InPlaceResidualBlock(branch, shortcut, activation)(x)
