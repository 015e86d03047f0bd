"""An observation: the results of a target on one case, each computed when it is first needed."""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np

from ...adapters.binding import differentiable
from ...adapters.session import Session
from ...spec.errors import CALL_FAILED, BadOutput, MissingGradient, TargetRaised, Unsupported
from ..cases.case import Case
from .truth import owner_of


class Caller(Protocol):
    """Calls a target: a Subject."""

    forward_only: bool

    @property
    def session(self) -> Session: ...

    def modes(self, case: Case) -> tuple[str, ...]: ...

    def outputs(self, case: Case, mode: str = "training") -> dict[str, np.ndarray]: ...

    def tracked(
        self, case: Case, wrt: tuple[str, ...] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]: ...


@attrs.define(eq=False)
class Observation:
    """The results of a target on one case; outputs and gradients are computed when first needed."""

    _subject: Caller
    case: Case
    _outputs: dict[str, np.ndarray] | None = None
    _gradients: dict[str, np.ndarray] | None = None
    _tracked: dict[str, np.ndarray] = attrs.field(factory=dict)
    #: The gradients that there are, where another is missing.
    _present: dict[str, np.ndarray] | None = None
    _untracked: dict[str, np.ndarray] | None = None
    _failure: Exception | None = None
    _gradient_failure: Exception | None = None

    @property
    def lacks_outputs(self) -> bool:
        """Whether the outputs have not been computed yet."""
        return self._outputs is None and self._failure is None

    @property
    def has_gradients(self) -> bool:
        """Whether the gradients have been computed."""
        return self._gradients is not None

    @property
    def lacks_gradients(self) -> bool:
        """Whether the gradients have not been computed yet."""
        return self._gradients is None and self._gradient_failure is None

    @property
    def lacks_untracked(self) -> bool:
        """Whether the outputs of :attr:`untracked` have not been computed yet, in a mode of their own."""
        return self._untracked is None

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """y and, for batch_norm, the new running statistics, by name."""
        if self._failure is not None:
            raise self._failure
        if self._outputs is None:
            try:
                self._outputs = self._subject.outputs(self.case)
            except CALL_FAILED as failure:
                self._failure = failure
                raise
        return self._outputs

    @property
    def tracked(self) -> dict[str, np.ndarray]:
        """Outputs of the call whose gradients were taken. A functional framework returns only y."""
        _ = self.gradients
        return self._tracked

    @property
    def untracked(self) -> dict[str, np.ndarray]:
        """The outputs of a call without gradients, in the last of Subject.modes."""
        mode = self._subject.modes(self.case)[-1]
        if mode == "training":
            return self.outputs
        if self._untracked is None:
            self._untracked = self._subject.outputs(self.case, mode)
        return self._untracked

    @property
    def started(self) -> dict[str, np.ndarray]:
        """The outputs as Subject.start would give them: with gradients tracked, if calls of the subject track them."""
        if self._subject.forward_only or not self._subject.session.tracks_calls:
            return self.outputs
        try:
            return {**self.outputs, **self.tracked}
        except (TargetRaised, BadOutput, Unsupported):
            return self.outputs

    @property
    def gradients(self) -> dict[str, np.ndarray]:
        """Gradients by name: "dx", and "dgamma", "dbeta", "dgate.z" and so on for the other inputs that are given."""
        if self._gradient_failure is not None:
            raise self._gradient_failure
        if self._gradients is None:
            try:
                self._tracked, self._gradients = self._subject.tracked(self.case)
            except CALL_FAILED as failure:
                self._gradient_failure = failure
                raise
        return self._gradients

    def gradient(self, name: str) -> np.ndarray:
        """
        One gradient by name, for an input that is given, even where the gradient of another input is missing.

        Raises MissingGradient if it is missing itself, and Unsupported if the target's gradients reach no leaves.
        """
        try:
            found = self.gradients
        except MissingGradient as failure:
            if owner_of(name) in failure.missing:
                raise
            if self._present is None:
                inputs = differentiable(self.case.operator, self.case.inputs)
                rest = tuple(one for one in inputs if one not in failure.missing)
                _, self._present = self._subject.tracked(self.case, rest)
            found = self._present
        if name not in found:
            raise Unsupported("no gradient reaches what the parts close over")
        return found[name]
