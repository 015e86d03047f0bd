"""GroupNorm over consecutive channels, and over the channels that are the same modulo the number of groups.

Check:        normspec check examples/group_norm_interleaved.py:group_norm --op group_norm
Verdict:      conforms (exit status 0)
Conventions:  none

Check:        normspec check examples/group_norm_interleaved.py:interleaved --op group_norm
Verdict:      does not conform (exit status 1)
Violates:     GN-F1, GN-F7 among others
Conventions:  none

Both have groups of the same size, so that nothing but the values tells them apart: weights that were trained with the
one are wrong in the other. The size of a group is written out: reshape(samples, groups, -1) raises for no samples.
"""

import torch


def group_norm(x, gamma, beta, *, eps, groups, channel_axis):
    """gamma (x - mean) / sqrt(var + eps) + beta over C / groups channels and all positions of each sample."""
    moved = x.movedim(channel_axis, 1)
    y = normalised(widened(moved), eps, groups)
    return affine(y, gamma, beta).to(x.dtype).movedim(1, channel_axis)


def interleaved(x, gamma, beta, *, eps, groups, channel_axis):
    """The same over the channels c, c + groups, c + 2 groups, and so on."""
    moved = x.movedim(channel_axis, 1)
    order = torch.arange(moved.shape[1]).reshape(-1, groups).T.reshape(-1)
    y = normalised(widened(moved)[:, order], eps, groups)[:, order.argsort()]
    return affine(y, gamma, beta).to(x.dtype).movedim(1, channel_axis)


def normalised(x, eps, groups):
    """xhat of x with its channels at axis 1."""
    rows = x.reshape(x.shape[0] * groups, x[:1].numel() // groups if len(x) else 1)
    centred = rows - rows.mean(1, keepdim=True)
    return (centred / torch.sqrt(centred.square().mean(1, keepdim=True) + eps)).reshape(x.shape)


def affine(y, gamma, beta):
    """gamma y + beta, one of each a channel."""
    shape = (-1, *(1 for _ in y.shape[2:]))
    y = y if gamma is None else y * gamma.reshape(shape)
    return y if beta is None else y + beta.reshape(shape)


def widened(x):
    """The tensor in float32 at least."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
