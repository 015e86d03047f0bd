"""A transformer block whose norm_position is "pre" or "post".

Check:        normspec check examples/transformer_block.py:pre_norm --op pre_norm --convention storage=H2
Verdict:      conforms (exit status 0)
Conventions:  storage=H2

Check:        normspec check examples/transformer_block.py:post_norm --op post_norm --convention storage=H2
Verdict:      conforms (exit status 0)
Conventions:  storage=H2

A block is two sublayers, attention and feed-forward, each with its norm and its skip path. That pattern,
`NormedSublayer`, is what is checked, once in each position; `TransformerBlock` is made of two of them. PyTorch's
layer_norm keeps its statistics and sums in 16 bits where x has 16 bits: hence the declaration. Where a tangent is
differentiated it is wrong: `pre_norm_expected` and `post_norm_expected` name that, and the report says `deviates`.
"""

from functools import partial

from torch import nn
from torch.nn import functional


class NormedSublayer(nn.Module):
    """x + sublayer(norm(x)) for "pre", norm(x + sublayer(x)) for "post"."""

    def __init__(self, sublayer, norm, norm_position):
        super().__init__()
        if norm_position not in ("pre", "post"):
            raise ValueError(f"norm_position is {norm_position!r}: give 'pre' or 'post'")
        self.sublayer, self.norm, self.norm_position = sublayer, norm, norm_position

    def forward(self, x):
        if self.norm_position == "pre":
            return x + self.sublayer(self.norm(x))
        return self.norm(x + self.sublayer(x))


class SelfAttention(nn.Module):
    """Attention of a sequence (N, L, width) to itself."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class TransformerBlock(nn.Sequential):
    """Self-attention, then a feed-forward network, each a NormedSublayer."""

    def __init__(self, width, heads, norm_position="pre"):
        feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        super().__init__(
            NormedSublayer(SelfAttention(width, heads), nn.LayerNorm(width), norm_position),
            NormedSublayer(feed_forward, nn.LayerNorm(width), norm_position),
        )


def pre_norm(x, sublayer, gamma, beta, *, eps):
    """NormedSublayer in the first position, as the function that is checked."""
    return NormedSublayer(sublayer, layer_norm(x, gamma, beta, eps), "pre")(x)


def post_norm(x, sublayer, gamma, beta, *, eps):
    """NormedSublayer in the second position, as the function that is checked."""
    return NormedSublayer(sublayer, layer_norm(x, gamma, beta, eps), "post")(x)


def layer_norm(x, gamma, beta, eps):
    """What nn.LayerNorm computes, with the parameters that were handed in."""
    return partial(functional.layer_norm, normalized_shape=x.shape[-1:], weight=gamma, bias=beta, eps=eps)


pre_norm_expected = {
    "PR-G9": "a tangent's gradient takes layer_norm's statistics for constants (pytorch#196700)",
    "PR-G10": "a tangent's tangent takes layer_norm's statistics for constants (pytorch#196700)",
}
post_norm_expected = {"PO-G9": pre_norm_expected["PR-G9"], "PO-G10": pre_norm_expected["PR-G10"]}


if __name__ == "__main__":
    import torch

    sequence = torch.randn(2, 10, 64)
    print(TransformerBlock(64, heads=4, norm_position="post")(sequence).shape)
