"""Values, arrays, parts and calls as Python code. Everything that comes from a target is written as a literal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from ...spec.itself import FACTOR, inside
from ...spec.operators import Operator
from ...spec.parts import Part, Parts
from ..judging.call_log import LoggedCall
from ..judging.translated import Translation
from ..replay.writing import memory
from ..reporting.numbers import hex_float
from .language import Language


class CannotWrite(Exception):
    """Why there is no script."""


def literal(value: Any) -> str:
    """A setting or a number; floats are written to the last bit."""
    if isinstance(value, (bool, np.bool_)):
        return repr(bool(value))
    if isinstance(value, (int, np.integer)):
        return repr(int(value))
    if isinstance(value, (float, np.floating)):
        return f"float.fromhex({hex_float(float(value))!r})"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if value is None:
        return "None"
    raise CannotWrite(f"it is called with a {type(value).__name__}")


def identifier(name: str) -> str:
    """The variable of an input: "branch_w" for "branch.w"."""
    return name.replace(".", "_")


@attrs.frozen
class Spelling:
    """How the calls of one target are written."""

    #: The name of the target in the script.
    function: str
    operator: Operator
    language: Language
    #: The conventions that it declares.
    conventions: Mapping[str, str]
    device: str
    #: The derivatives ("vjp", "jvp" and so on) that are functions beside the target, and are called.
    written_out: frozenset[str]
    #: Whether nothing is tracked for gradients in its plain calls, as where a check makes them.
    untracked: bool = False

    def has(self, helper: str) -> bool:
        """Whether the framework has a helper with this name."""
        return helper in self.language.functions

    def array(self, array: np.ndarray, layout: str = "") -> str:
        """A tensor with these values, in this layout."""
        values = " ".join(hex_float(value) for value in np.asarray(array).astype(np.float64).ravel())
        shape = literal(tuple(int(size) for size in array.shape))
        given = f"{values!r}, {str(array.dtype)!r}, {shape}"
        place = "" if self.device == "cpu" else f", device={self.device!r}"
        if not layout or layout == "contiguous":
            return f"tensor({given}{place})"
        if not self.has("strided"):
            raise CannotWrite(f"a tensor that is {layout} in memory")
        laid = memory(array, layout)
        return f"strided({given}, {literal(tuple(laid['strides']))}, {laid['offset']}{place})"

    def inputs(self, call: LoggedCall) -> dict[str, np.ndarray | None]:
        """The inputs in the form that the target takes."""
        if self.conventions.get("float64") == "float32" and any(
            one is not None and one.dtype == np.float64 for one in call.inputs.values()
        ):
            raise CannotWrite("it takes float64 for float32")
        gain = self.operator.has_gain and self.conventions.get("gain") == "one-plus-gamma"
        return Translation(gain=gain).inputs(call.inputs)

    def call(self, call: LoggedCall, variables: Mapping[str, str], function: str = "", *more: str) -> str:
        """A call of the target, or of one of its derivatives with ``more`` tensors after the others."""
        roles = {role: self._role(call.parts, role, variables) for role in self.operator.roles}
        positional = [roles.get(name) or variables.get(name, "None") for name in self.operator.arguments]
        settings = dict(call.settings)
        if "momentum" in settings and self.conventions.get("momentum") == "old":
            settings["momentum"] = 1.0 - settings["momentum"]
        keywords = [f"{name}={literal(value)}" for name, value in settings.items()]
        keywords += [f"{role}={roles[role]}" for role in self.operator.optional if roles[role] != "None"]
        return f"{function or self.function}({', '.join([*positional, *more, *keywords])})"

    def _role(self, parts: Parts, role: str, variables: Mapping[str, str]) -> str:
        part = parts.get(role)
        if part is None:
            return "None"
        if isinstance(part, tuple):
            return f"[{', '.join(self._part(one, variables) for one in part)}]"
        return self._part(part, variables)

    def _part(self, part: Part, variables: Mapping[str, str]) -> str:
        return self._itself(part, variables) if part.kind == "itself" else written(part, variables)

    def _itself(self, part: Part, variables: Mapping[str, str]) -> str:
        """A part that is the operator itself: a call of the target."""
        within = inside(self.operator, part)
        given = {"x": f"{FACTOR} * x", **{name: variables[leaf] for name, leaf in within.parameters.items()}}
        given.update({role: self._role(within.parts, role, variables) for role in within.parts})
        positional = [given[name] for name in self.operator.arguments]
        keywords = [f"{name}={literal(value)}" for name, value in within.settings.items()]
        return f"lambda x: {self.function}({', '.join([*positional, *keywords])})"


def written(part: Part, variables: Mapping[str, str]) -> str:
    """A part as an expression: a function of the helpers zeros, tanh, relu, matmul, view, flattened and shift."""
    maker = _PARTS.get(part.kind)
    if maker is None:
        raise CannotWrite(f"a part is {part.kind}, which takes more than an expression")
    leaves = [variables[name] for name in part.leaves]
    return maker(part, leaves, [written(one, variables) for one in part.inner])


def _convolution(part: Part, leaves: list[str], inner: list[str]) -> str:
    taps = [f"{leaves[0]}[{place}] * shift(x, {offset}, -2)" for place, offset in enumerate(part.offsets)]
    return f"lambda x: {' + '.join(taps)}"


def _cascade(part: Part, leaves: list[str], inner: list[str]) -> str:
    value = "x"
    for one in inner:
        value = f"({one})({value})"
    return f"lambda x: {value}"


def _of_x(body: str) -> Callable[[Part, list[str], list[str]], str]:
    """A part of one expression, in which {leaf}, {inner} and {number} stand for its own."""

    def made(part: Part, leaves: list[str], inner: list[str]) -> str:
        leaf, first = (leaves or [""])[0], (inner or [""])[0]
        return f"lambda x: {body.format(leaf=leaf, inner=first, number=literal(float(part.number)))}"

    return made


def _of_list(body: str) -> Callable[[Part, list[str], list[str]], str]:
    return lambda part, leaves, inner: f"lambda ys: {body.format(leaf=(leaves or [''])[0])}"


_PARTS: Mapping[str, Callable[[Part, list[str], list[str]], str]] = {
    "identity": _of_x("x"),
    "view": _of_x("view(x)"),
    "zero": _of_x("zeros(x)"),
    "leaf": _of_x("view({leaf})"),
    "negated": _of_x("-x"),
    "scaled": _of_x("{number} * x"),
    "linear": _of_x("matmul(x, {leaf})"),
    "tanh_linear": _of_x("tanh(matmul(x, {leaf}))"),
    "square": _of_x("x * x"),
    "relu": _of_x("relu(x)"),
    "tanh": _of_x("tanh(x)"),
    "convolution": _convolution,
    "causal": _convolution,
    "cascade": _cascade,
    "dropout": _of_x("({inner})(x) * {leaf}"),
    "misshapen": _of_x("({inner})(x)[..., :-1]"),
    "flattened": _of_x("flattened(({inner})(x))"),
    "broadcasting": _of_x("({inner})(x)[..., :1]"),
    "fuse_sum": _of_list("sum(ys[1:], ys[0])"),
    "fuse_product": _of_list("functools.reduce(operator.mul, ys)"),
    "fuse_weighted": _of_list("sum([{leaf}[k] * ys[k] for k in range(1, len(ys))], {leaf}[0] * ys[0])"),
    "fuse_coupled": _of_list("sum([*ys[1:], *[tanh(one) * other for one, other in zip(ys, ys[1:])]], ys[0])"),
}
