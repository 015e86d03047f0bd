"""A transformer block whose norm_position is "pre" or "post", and which tells what each sublayer adds to the stream.

Check:        normspec check examples/transformer_contributions.py:pre_norm --op pre_norm --convention storage=H2
Verdict:      conforms (exit status 0)
Conventions:  storage=H2

Check:        normspec check examples/transformer_contributions.py:post_norm --op post_norm --convention storage=H2
Verdict:      conforms (exit status 0)
Conventions:  storage=H2

A hook is called with the stream and with what the sublayer adds to it, both detached, so that it can change neither
the values nor the gradients. `Contributions` is one: it keeps the norm of the branch over that of the stream, which
`normspec study residual-contributions` measures over training. It stands between the parts that the check looks at,
and is on while they are checked. PyTorch's layer_norm is wrong where a tangent is differentiated, which
`pre_norm_expected` and `post_norm_expected` say.
"""

from functools import partial

import torch
from torch import nn
from torch.nn import functional


class Contributions:
    """A hook that keeps, for each sublayer by name, the norm of what it added over that of the stream below it."""

    def __init__(self):
        self.ratios = {}

    def __call__(self, name, stream, added):
        stream, added = stream.float(), added.float()  # a square of 16-bit data overflows early
        self.ratios.setdefault(name, []).append(added.norm() / stream.norm())


class NormedSublayer(nn.Module):
    """x + sublayer(norm(x)) for "pre", norm(x + sublayer(x)) for "post"."""

    def __init__(self, sublayer, norm, norm_position, hook=None, name=""):
        super().__init__()
        if norm_position not in ("pre", "post"):
            raise ValueError(f"norm_position is {norm_position!r}: give 'pre' or 'post'")
        self.sublayer, self.norm, self.norm_position = sublayer, norm, norm_position
        self.hook, self.name = hook, name

    def forward(self, x):
        pre = self.norm_position == "pre"
        added = self.sublayer(self.norm(x) if pre else x)
        if self.hook is not None:
            self.hook(self.name, x.detach(), added.detach())
        total = x + added
        return total if pre else self.norm(total)


class SelfAttention(nn.Module):
    """Attention of a sequence (N, L, width) to itself."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class TransformerBlock(nn.Sequential):
    """Self-attention, then a feed-forward network, each a NormedSublayer that calls the hook."""

    def __init__(self, width, heads, norm_position="pre", hook=None):
        feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        super().__init__(
            NormedSublayer(SelfAttention(width, heads), nn.LayerNorm(width), norm_position, hook, "attention"),
            NormedSublayer(feed_forward, nn.LayerNorm(width), norm_position, hook, "feed-forward"),
        )


def pre_norm(x, sublayer, gamma, beta, *, eps):
    """NormedSublayer in the first position, recording, as the function that is checked."""
    return NormedSublayer(sublayer, layer_norm(x, gamma, beta, eps), "pre", Contributions())(x)


def post_norm(x, sublayer, gamma, beta, *, eps):
    """NormedSublayer in the second position, recording, as the function that is checked."""
    return NormedSublayer(sublayer, layer_norm(x, gamma, beta, eps), "post", Contributions())(x)


def layer_norm(x, gamma, beta, eps):
    """What nn.LayerNorm computes, with the parameters that were handed in."""
    return partial(functional.layer_norm, normalized_shape=x.shape[-1:], weight=gamma, bias=beta, eps=eps)


pre_norm_expected = {
    "PR-G9": "a tangent's gradient takes layer_norm's statistics for constants (pytorch#196700)",
    "PR-G10": "a tangent's tangent takes layer_norm's statistics for constants (pytorch#196700)",
}
post_norm_expected = {"PO-G9": pre_norm_expected["PR-G9"], "PO-G10": pre_norm_expected["PR-G10"]}


if __name__ == "__main__":
    seen = Contributions()
    TransformerBlock(64, heads=4, norm_position="pre", hook=seen)(torch.randn(2, 10, 64))
    for sublayer, ratios in seen.ratios.items():
        print(f"{sublayer}: {ratios[-1]:.2f} of the stream")
