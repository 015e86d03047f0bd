"""Hypothesis strategies: cases of the operators without parts, for the user's own properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..adapters.dtypes import DTYPES
from ..adapters.targets import check_operators
from ..conformance.cases.case import Case, build
from ..conformance.cases.description import Description
from ..conformance.cases.generate import EPS, INDICES, LENGTHS, MOMENTA
from ..conformance.cases.parameters import AFFINE, COTANGENT
from ..conformance.cases.regimes import GENERATED
from ..conformance.requests.arguments import text_of, texts_of
from ..conformance.requests.request import checked_dtypes
from ..spec.errors import NormspecError, UnknownOperator
from ..spec.extras import how_to_add
from ..spec.operators import COMPOSED, OPERATORS
from .asserting import judge_or_raise
from .judgement import Judgement
from .options import JudgementOptions

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: The largest number of groups in a case.
_GROUPS = 6


class NoHypothesis(NormspecError, ImportError):
    """Hypothesis is not installed."""


@attrs.frozen(eq=False, repr=False)
class Drawn:
    """One case: the arguments for a function, and the judge of its results."""

    _case: Case
    _options: JudgementOptions
    dtype: str

    @property
    def op(self) -> str:
        """The operator."""
        return self._case.operator

    @property
    def inputs(self) -> Mapping[str, np.ndarray | None]:
        """The positional arguments by name, as NumPy arrays; bfloat16 is ml_dtypes's. gamma and beta may be None."""
        return self._case.inputs

    @property
    def settings(self) -> Mapping[str, Any]:
        """The keyword arguments: eps, axes and so on."""
        return self._case.settings

    @property
    def g(self) -> np.ndarray:
        """The cotangent of y."""
        return self._case.g

    def judge(self, y: Any, new_running_mean: Any = None, new_running_var: Any = None) -> dict[str, Judgement]:
        """
        Judge results, in arrays of any framework; a statistic that is None is not judged.

        Raises OutsideEnvelope, an AssertionError, as `normspec.testing.assert_layer_norm` does. Where nothing is
        promised for the case, nothing is raised; then ``judged`` of the judgement is 0.
        """
        __tracebackhide__ = True
        results = {"y": y, "new_running_mean": new_running_mean, "new_running_var": new_running_var}
        return judge_or_raise(self.op, results, self.inputs, self.settings, self._options, unjudged=True)

    def judge_gradients(self, dx: Any = ..., dgamma: Any = ..., dbeta: Any = ...) -> dict[str, Judgement]:
        """Judge the given gradients of sum(y g) in the same way; None fails where its parameter is given."""
        __tracebackhide__ = True
        results = {"dx": dx, "dgamma": dgamma, "dbeta": dbeta}
        return judge_or_raise(self.op, results, self.inputs, self.settings, self._options, self.g, unjudged=True)

    def __repr__(self) -> str:
        """The arguments, and the kinds of groups they were drawn from."""
        description = self._case.description
        assert description is not None
        kinds = ", ".join(dict.fromkeys(name for name, _ in description.groups))
        count = len(description.groups)
        groups = f"{count} group{'s' if count > 1 else ''} of {description.n} ({kinds})"
        given = [f"{name}={_shown(value)}" for name, value in {**self.inputs, "g": self.g}.items()]
        said = [f"{name}={value!r}" for name, value in self.settings.items()]
        return f"{self.op} in {self.dtype}, {groups}: {', '.join((*given, *said))}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same for Hypothesis, which otherwise shows every field of an attrs class."""
        printer.text(repr(self))


def _shown(value: np.ndarray | None) -> str:
    return "None" if value is None else str(value.astype(np.float64).tolist()) if value.size <= 16 else str(value.shape)


def cases(
    op: str, *, dtypes: str | Iterable[str] | None = None, longest: int = 100, **options: Any
) -> SearchStrategy[Drawn]:
    """
    Cases of an operator without parts: every kind of group and of parameter that normspec draws.

    ``dtypes``: one of "float16", "bfloat16", "float32", "float64", or several; all by default. ``longest``: the most
    values in a group. ``options``: options of the judgement, as for the assertions: ``storage="H2"``,
    ``variance_algorithm`` and so on. A case that fails shrinks to one group of few values.

    Raises NoHypothesis, a NormspecError for a wrong operator or dtype, and ValueError or TypeError for other options.
    """
    try:
        from hypothesis import strategies
    except ModuleNotFoundError:
        raise NoHypothesis(f"Hypothesis is not installed: {how_to_add('hypothesis')}") from None
    (operator,) = check_operators(text_of(op, "op", "layer_norm"))
    if operator in COMPOSED:
        raise UnknownOperator(f"{operator} is handed parts; there are cases of the operators that take none")
    record, named = OPERATORS[operator], None if dtypes is None else texts_of(dtypes, "dtypes", "float32")
    chosen = checked_dtypes(named) or tuple(DTYPES)
    if isinstance(longest, bool) or not isinstance(longest, (int, np.integer)) or longest < 1:
        raise ValueError(f"longest is {longest!r}: pass a whole number from 1 on")
    lengths = [n for n in LENGTHS if n <= longest]
    chosen_options = JudgementOptions.of(None, **options)

    @strategies.composite
    def drawn(draw: Any) -> Drawn:
        group = strategies.tuples(strategies.sampled_from(GENERATED), strategies.integers(0, INDICES - 1))
        description = Description(
            operator,
            draw(strategies.sampled_from(lengths)),
            tuple(draw(strategies.lists(group, min_size=1, max_size=_GROUPS))),
            eps=draw(strategies.sampled_from(EPS)),
            gamma=draw(strategies.sampled_from(AFFINE)),
            beta=draw(strategies.sampled_from(AFFINE)),
            cotangent=draw(strategies.sampled_from(COTANGENT)),
            seed=draw(strategies.integers(0, 255)),
            training=draw(strategies.sampled_from((True, False))) if record.has_modes else True,
            momentum=draw(strategies.sampled_from(MOMENTA)) if record.has_modes else MOMENTA[0],
        )
        dtype = draw(strategies.sampled_from(chosen))
        return Drawn(build(description, dtype), chosen_options, dtype)

    return drawn()
