"""
What a layer with sublayers of its own does at its seams, recorded without changing any value.

Hooks note the tensors that pass between the normalisations and the sublayers, and autograd says what gradient
arrives at each of them. Where a sublayer is handed x itself, beside an addition that reads x as well, it is handed
another view of x, at which its own share of x's gradient arrives.
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

    #: Its LayerNorm.
    norm: str
    #: What the sublayer begins with, and what it ends with.
    first: str
    last: str


def weights(layer: nn.Module, blocks: Sequence[Block], x: torch.Tensor, seed: int) -> Tensors:
    """
    Weights for all of a layer: the same for the same seed, of x's dtype and on its device, gradients tracked.

    A linear map's are of deviation 1 / sqrt(inputs), so that it keeps the size of what it is handed. No gain and no
    shift of a normalisation is left at its default of one or zero.
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
    Run the layer and its backward pass, and return for each block what adapters/seam.py names.

    ``tensors`` is lent to the layer as its weights; ``pre`` says that the blocks are pre_norm and not post_norm.
    """
    noted: list[Tensors] = [{} for _ in blocks]
    with _hooks(layer, blocks, noted, pre=pre):
        returned = functional_call(layer, dict(tensors), (x,))
    if pre:
        ends = [after["x"] for after in noted[1:]] + [returned]
    else:  # the last normalisation's result, whatever the layer returns it in
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
    """Note, while the layer runs, what its normalisations and sublayers are handed and return."""
    handles: list[Any] = []

    def around(block: Block, note: Tensors) -> None:
        def normalised(module: nn.Module, handed: tuple[Any, ...], returned: torch.Tensor) -> None:
            if pre:
                note["x"], note["received"] = handed[0], returned
            else:
                note["normal"] = returned

        def beginning(module: nn.Module, handed: tuple[Any, ...]) -> tuple[Any, ...]:
            note["received"] = handed[0].view_as(handed[0])
            # Attention is handed one tensor as queries, keys and values.
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
    """The call of a layer that brings its own sublayers: always Unsupported."""
    raise Unsupported("the layer brings its own sublayers and takes none: it is judged at its seams")


#: The most features that a layer is made for: its weights, several times their square, are drawn anew each call.
_WIDEST = 256


def accepts(shape: tuple[int, ...], settings: Mapping[str, Any]) -> str | None:
    """None, or why a layer of attention is not put to a call."""
    if len(shape) != 3:
        return f"a layer of attention takes rank 3, (batch, sequence, features), not {len(shape)}"
    if 0 in shape:
        return "attention over nothing is not defined"
    if shape[-1] > _WIDEST or shape[-2] > _WIDEST:
        return f"its weights and scores grow with the square of the sizes: up to {_WIDEST} features and positions"
    return None


def heads(features: int) -> int:
    """How many heads to have: two where the features can be shared out among them."""
    return 1 if features % 2 else 2


def lend(made: Tensors, block: Block, gamma: torch.Tensor | None, beta: torch.Tensor | None) -> Tensors:
    """The weights with one normalisation's gamma and beta as given; ones and zeros where they are None."""
    weight, bias = made[f"{block.norm}.weight"], made[f"{block.norm}.bias"]
    return {
        **made,
        f"{block.norm}.weight": torch.ones_like(weight).requires_grad_() if gamma is None else gamma,
        f"{block.norm}.bias": torch.zeros_like(bias).requires_grad_() if beta is None else beta,
    }
