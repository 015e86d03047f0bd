"""A highway layer and an MHC layer that take the plain signature only: no carry gate, no fusion of another kind.

Check:        normspec check examples/plain_signatures.py:highway --op highway
Verdict:      conforms (exit status 0)
Unsupported:  HW-F2, HW-L6, HW-L7, HW-G5
Conventions:  none

Check:        normspec check examples/plain_signatures.py:mhc --op mhc
Verdict:      conforms (exit status 0)
Unsupported:  MH-F5, MH-F6, MH-G5
Conventions:  none

A function is checked for what it has. What needs the keyword argument that it does not take is reported as
unsupported, with that reason, and counted.
"""

import torch


def highway(x, transform, gate):
    """transform(x) * t + x * (1 - t)."""
    h, t = wide(transform(x)), torch.sigmoid(wide(gate(x)))
    return (h * t + wide(x) * (1 - t)).to(x.dtype)


def mhc(x, branches, logits):
    """x + sum_k softmax(logits)_k * branches[k](x)."""
    outputs = torch.stack([wide(branch(x)) for branch in branches], dim=-1)
    return (wide(x) + outputs @ torch.softmax(wide(logits), dim=0)).to(x.dtype)


def wide(tensor):
    """The tensor in float32 at least."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
