"""
One file of functions for every framework that differentiates, and its sound twin, for scripts without normspec.

Their mistakes are in a value (layer_norm, eps) and in gradients: what `held` takes is a constant in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from normspec import Report
from normspec.adapters.targets import resolve

from .scripts import run, written

_TEXT = """
{imports}


def held(x):
    return {held}


def mean(x, axes=(-1,)):
    return {mean}


def norm(x, gamma, beta, eps, spread, axes=(-1,)):
    d = x - mean(x, axes)
    y = d / spread(mean(d * d, axes), eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def right(var, eps):
    return {sqrt}(var + eps)


def layer_norm(x, gamma, beta, *, eps, axes):
    return norm(x, gamma, beta, eps, {spread}, axes)


def rms_norm(x, gamma, *, eps, axes):
    y = x / held(right(mean(x * x, axes), eps))
    return y if gamma is None else y * gamma


def residual(x, branch, *, shortcut=None, activation=None):
    y = held(x if shortcut is None else shortcut(x)) + branch(x)
    return y if activation is None else activation(y)


def pre_norm(x, sublayer, gamma, beta, *, eps):
    return held(x) + sublayer(norm(x, gamma, beta, eps, right))


def post_norm(x, sublayer, gamma, beta, *, eps):
    return norm(held(x) + sublayer(x), gamma, beta, eps, right)


def highway(x, transform, gate, *, carry=None):
    t = held({sigmoid}(gate(x)))
    c = 1 - t if carry is None else {sigmoid}(carry(x))
    return transform(x) * t + x * c


def mhc(x, branches, logits, *, fuse=None):
    values = [branch(x) for branch in branches]
    if fuse is not None:
        return held(x) + fuse(values)
    weights = {softmax}(logits, {axis})
    return held(x) + sum(weights[k] * value for k, value in enumerate(values))
"""

#: The mistake for each operator, and the requirement that reports it.
MISTAKES = {
    "layer_norm": "LN-F1",
    "rms_norm": "RM-G1",
    "residual": "RS-G1",
    "pre_norm": "PR-G1",
    "post_norm": "PO-G1",
    "highway": "HW-G4",
    "mhc": "MH-G1",
}


@attrs.frozen
class Words:
    """A framework's code for everything that the file needs."""

    framework: str
    imports: str
    #: x as a constant of the backward pass.
    held: str
    #: The mean of x over `axes`, which are kept.
    mean: str
    sqrt: str
    sigmoid: str
    softmax: str

    def file(self, *, wrong: bool) -> str:
        """The text of the file, or of its sound twin."""
        spread = f"lambda var, eps: {self.sqrt}(var) + eps" if wrong else "right"
        words = attrs.asdict(self)
        return _TEXT.format(**{**words, "held": self.held if wrong else "x"}, spread=spread, axis=-1)


def wrong_with(words: Words, operator: str, folder: Path, checked: Callable[..., Report]) -> str:
    """
    The problem with the script for one function of the file; empty if there is none.

    ``checked``: the report on a target and some requirements.
    """
    bad, sound = folder / "bad.py", folder / "sound.py"
    bad.write_text(words.file(wrong=True))
    sound.write_text(words.file(wrong=False))
    requirement = MISTAKES[operator]
    target = resolve(f"{bad}:{operator}", op=operator, framework=words.framework)
    failures = checked(target, requirements=[requirement]).failures()
    if not failures:
        return f"{operator} violates no {requirement}"
    text = written(failures[0], bad, operator, words.framework)
    if "normspec" in text.split("\n\n")[0].replace("of normspec", ""):
        return f"the script for {operator} names normspec"
    on_itself, on_sound = run(text), run(text, str(sound))
    return (
        "" if on_itself and on_itself.startswith("AssertionError") and on_sound is None else f"{on_itself}; {on_sound}"
    )
