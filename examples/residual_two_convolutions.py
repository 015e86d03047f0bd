"""A post-activation residual block with two convolutions: relu(shortcut(x) + branch(x)).

Check:        normspec check examples/residual_two_convolutions.py:residual --op residual
Verdict:      conforms (exit status 0)
Conventions:  none

What is checked is the wiring. The block takes its parts from outside, so that a check can hand it branches whose
values and Jacobians are known; `two_convolutions` hands it the real ones.
"""

from torch import nn


class ResidualBlock(nn.Module):
    """activation(shortcut(x) + branch(x)); what is not given is the identity."""

    def __init__(self, branch, shortcut=None, activation=None):
        super().__init__()
        self.branch = branch
        self.shortcut = nn.Identity() if shortcut is None else shortcut
        self.activation = nn.Identity() if activation is None else activation

    def forward(self, x):
        return self.activation(self.shortcut(x) + self.branch(x))


def residual(x, branch, *, shortcut=None, activation=None):
    """The class, as the function that is checked."""
    return ResidualBlock(branch, shortcut, activation)(x)


def two_convolutions(inputs, outputs, stride=1):
    """The block of a residual network for images, with a projection where the shape changes."""
    branch = nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
    )
    shortcut = None
    if stride != 1 or inputs != outputs:
        shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
    return ResidualBlock(branch, shortcut, nn.ReLU())


if __name__ == "__main__":
    import torch

    image = torch.randn(8, 16, 32, 32)
    print(two_convolutions(16, 32, stride=2)(image).shape)
