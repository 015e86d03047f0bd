"""PyTorch ends the process in a gradient of group_norm: the binding declines these calls, and no others."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
import torch

from normspec.adapters.torch.group_norm import _decline_what_crashes
from normspec.spec.errors import Unsupported

#: The gradient of gamma alone, of x with its channels last in memory.
GRADIENT = """
import sys, torch
shape = tuple(map(int, sys.argv[1].split(",")))
last = {4: torch.channels_last, 5: torch.channels_last_3d}[len(shape)]
x, gamma = torch.randn(shape).to(memory_format=last), torch.ones(shape[1], requires_grad=True)
torch.autograd.grad(torch.nn.functional.group_norm(x, 2, gamma).sum(), [gamma])
"""


def frozen(shape, *, last=True, x_too=False, device="cpu"):
    """x, with its channels last in memory or not, and a gamma whose gradient is asked for."""
    form = {4: torch.channels_last, 5: torch.channels_last_3d}[len(shape)] if last else torch.contiguous_format
    x = torch.randn(shape, device=device).to(memory_format=form)
    return x.requires_grad_(x_too), torch.ones(shape[1], requires_grad=True), None


@pytest.mark.parametrize(("shape", "ends"), [((2, 4, 3, 3), True), ((2, 4, 3, 3, 2), True), ((2, 4, 32, 64), False)])
def test_what_is_declined_ends_the_process(shape, ends):
    """Once PyTorch mends it this fails, and the binding need decline nothing."""
    command = [sys.executable, "-c", GRADIENT, ",".join(map(str, shape))]
    assert subprocess.run(command, check=False).returncode == (-signal.SIGSEGV if ends else 0)
    if ends:
        with pytest.raises(Unsupported, match="PyTorch ends the process"):
            _decline_what_crashes(*frozen(shape))
    else:
        _decline_what_crashes(*frozen(shape))


@pytest.mark.parametrize("what", [{"last": False}, {"x_too": True}, {"device": "meta"}])
def test_other_calls_are_not_declined(what):
    """Contiguous data, an x whose gradient is asked for too, and other devices."""
    _decline_what_crashes(*frozen((2, 4, 3, 3), **what))
