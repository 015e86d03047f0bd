"""
Records the values at the seams of a layer that has sublayers of its own, without changing any value.

Hooks note the tensors that pass between the normalisations and the sublayers, and autograd gives the gradient of each
of them. If a sublayer reads x itself, and an addition reads x too, the sublayer gets another view of x: the gradient of
this view is the sublayer's share of x's gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Dict

import torch
from torch import nn
from torch.func import functional_call

from ...spec.errors import Unsupported

Tensors = Dict[str, torch.Tensor]


@dataclass(frozen=True)
class Block:
    """One block of a layer, by the names of the layer's modules."""

    #: The block's LayerNorm.
    norm: str
    #: The first and the last module of the sublayer.
    first: str
    last: str


def weights(layer: nn.Module, blocks: Sequence[Block], x: torch.Tensor, seed: int) -> Tensors:
    """
    Random weights for a whole layer, of x's dtype and on its device, tracked for gradients; they depend on the seed.

    The weights of a linear map have standard deviation 1 / sqrt(inputs), so that the output is as large as the input.
    No gain or shift of a normalisation keeps its default of one or zero.
    """
    generator, made = torch.Generator().manual_seed(seed), {}
    gains = {f"{block.norm}.weight" for block in blocks}
    for name, parameter in layer.named_parameters():
        drawn = torch.randn(parameter.shape, generator=generator)
        if name in gains:
            drawn = 1.0 + 0.25 * drawn
        elif parameter.ndim > 1:
            drawn = drawn / parameter.shape[-1] ** 0.5
        else:
            drawn = 0.25 * drawn
        made[name] = drawn.to(device=x.device, dtype=x.dtype).requires_grad_()
    return made


def recorded(
    layer: nn.Module,
    blocks: Sequence[Block],
    tensors: Mapping[str, Any],
    x: torch.Tensor,
    g: torch.Tensor,
    *,
    pre: bool,
) -> list[Tensors]:
    """
    Run the layer and its backward pass, and return for each block the arrays named in adapters/seam.py.

    ``tensors`` is lent to the layer as its weights; ``pre`` means that the blocks are pre_norm, not post_norm.
    """
    noted: list[Tensors] = [{} for _ in blocks]
    with _hooks(layer, blocks, noted, pre=pre):
        returned = functional_call(layer, dict(tensors), (x,))
    if pre:
        ends = [after["x"] for after in noted[1:]] + [returned]
    else:  # the last normalisation's result, however the layer wraps it
        ends = [one.pop("normal") for one in noted]
        for one, start in zip(noted, [x, *ends[:-1]]):
            one["x"] = start
    for one, end, block in zip(noted, ends, blocks):
        one["y"] = end
        one["gamma"], one["beta"] = tensors[f"{block.norm}.weight"], tensors[f"{block.norm}.bias"]

    pulled = {"dx": "x", "g_received": "received", "g_returned": "returned", "dgamma": "gamma", "dbeta": "beta"}
    wanted = [one[name] for one in noted for name in pulled.values()]
    found = iter(torch.autograd.grad(ends[-1], wanted, g))
    for one in noted:
        one.update({name: next(found) for name in pulled})
    # The cotangent of a block's y is the gradient of the next block's x.
    for one, cotangent in zip(noted, [*(after["dx"] for after in noted[1:]), g]):
        one["g"] = cotangent
    return noted


@contextmanager
def _hooks(layer: nn.Module, blocks: Sequence[Block], noted: Sequence[Tensors], *, pre: bool) -> Iterator[None]:
    """While the layer runs, note the inputs and outputs of its normalisations and sublayers."""
    handles: list[Any] = []

    def around(block: Block, note: Tensors) -> None:
        def normalised(module: nn.Module, handed: tuple[Any, ...], returned: torch.Tensor) -> None:
            if pre:
                note["x"], note["received"] = handed[0], returned
            else:
                note["normal"] = returned

        def beginning(module: nn.Module, handed: tuple[Any, ...]) -> tuple[Any, ...]:
            note["received"] = handed[0].view_as(handed[0])
            # Attention gets one tensor as queries, keys and values.
            return tuple(note["received"] if value is handed[0] else value for value in handed)

        def ended(module: nn.Module, handed: tuple[Any, ...], returned: torch.Tensor) -> None:
            note["returned"] = returned

        handles.append(layer.get_submodule(block.norm).register_forward_hook(normalised))
        handles.append(layer.get_submodule(block.last).register_forward_hook(ended))
        if not pre:
            handles.append(layer.get_submodule(block.first).register_forward_pre_hook(beginning))

    try:
        for block, note in zip(blocks, noted):
            around(block, note)
        yield
    finally:
        for handle in handles:
            handle.remove()


def takes_no_part(*tensors: Any, **settings: Any) -> Any:
    """The call of a layer that has sublayers of its own: always raises Unsupported."""
    raise Unsupported("the layer has its own sublayers and takes none: it is judged at its seams")


#: The most features of a layer: each call draws new weights, several times the square of this in number.
_WIDEST = 256


def accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """None, or why a layer with attention declines a call."""
    if len(shape) != 3:
        return f"a layer of attention takes rank 3, (batch, sequence, features), not {len(shape)}"
    if 0 in shape:
        return "attention over nothing is not defined"
    if shape[-1] > _WIDEST or shape[-2] > _WIDEST:
        return f"its weights and scores grow with the square of the sizes: up to {_WIDEST} features and positions"
    return None


def heads(features: int) -> int:
    """The number of heads: two if the features can be divided by two."""
    return 1 if features % 2 else 2


def lend(made: Tensors, block: Block, gamma: torch.Tensor | None, beta: torch.Tensor | None) -> Tensors:
    """The weights with one normalisation's gamma and beta replaced by these; None means ones and zeros."""
    weight, bias = made[f"{block.norm}.weight"], made[f"{block.norm}.bias"]
    return {
        **made,
        f"{block.norm}.weight": torch.ones_like(weight).requires_grad_() if gamma is None else gamma,
        f"{block.norm}.bias": torch.zeros_like(bias).requires_grad_() if beta is None else beta,
    }
