"""A LayerNorm that keeps statistics of what it normalised and reports them.

Check:        normspec check examples/layer_norm_statistics.py:layer_norm --op layer_norm
Verdict:      conforms (exit status 0)
Conventions:  none

Where activations drift, or groups become so even that eps decides what comes out, it shows here first. A hook is called
with the mean and the variance of each group, detached, so that it can change neither the values nor the gradients.
`Statistics` is one: it keeps a line for each call, and tells from it how far the moments moved and how many groups have
a variance that eps outweighs. `normspec study covariate-shift` and `normspec study eps-matters` are about these two. It
is on while the function is checked.
"""

import torch
from torch import nn


class Statistics:
    """A hook that keeps, for each call, the moments of the groups that were normalised."""

    def __init__(self):
        self.calls = []

    def __call__(self, mean, variance, eps):
        if not mean.numel():  # no groups, no moments
            return
        outweighed = (variance < eps).float().mean()
        self.calls.append(torch.stack((mean.mean(), variance.mean(), variance.min(), outweighed)))

    def report(self):
        """What was normalised, by the first call, the last, and all of them."""
        if not self.calls:
            return "nothing was normalised"
        calls = torch.stack(self.calls)
        (mean, variance, *_), (last_mean, last_variance, *_) = calls[0].tolist(), calls[-1].tolist()
        return "\n".join(
            (
                f"calls            {len(calls)}",
                f"mean             {mean:.4g} at first, {last_mean:.4g} at last",
                f"variance         {variance:.4g} at first, {last_variance:.4g} at last",
                f"least variance   {calls[:, 2].min():.4g}",
                f"below eps        {calls[:, 3].mean():.1%} of the groups, whose y eps shrinks",
            )
        )


class ReportingLayerNorm(nn.Module):
    """LayerNorm over the trailing axes of this shape, which calls its hook with the moments of each group."""

    def __init__(self, shape, eps=1e-5, weight=True, bias=True, hook=None):
        super().__init__()
        self.axes, self.eps = tuple(range(-len(shape), 0)), eps
        self.weight = nn.Parameter(torch.ones(shape)) if weight else None
        self.bias = nn.Parameter(torch.zeros(shape)) if bias else None
        self.hook = hook

    def forward(self, x):
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # 16-bit data is computed in float32
        variance, mean = torch.var_mean(wide, self.axes, correction=0, keepdim=True)
        if self.hook is not None:
            self.hook(mean.detach(), variance.detach(), self.eps)
        y = (wide - mean) / torch.sqrt(variance + self.eps)
        if self.weight is not None:
            y = y * self.weight
        if self.bias is not None:
            y = y + self.bias
        return y.to(x.dtype)


def layer_norm(x, gamma, beta, *, eps, axes):
    """The layer, recording, as the function that is checked."""
    layer = ReportingLayerNorm(x.shape[axes[0] :], eps, gamma is not None, beta is not None, hook=Statistics())
    parameters = {"weight": gamma, "bias": beta}
    given = {name: tensor for name, tensor in parameters.items() if tensor is not None}
    return torch.func.functional_call(layer, given, (x,))


if __name__ == "__main__":
    seen = Statistics()
    layer = ReportingLayerNorm((64,), hook=seen)
    for step in range(20):
        batch = (1 + step / 10) * torch.randn(32, 64) + step / 5
        batch[:4] = 3.0  # padding: groups without variance
        layer(batch)
    print(seen.report())
