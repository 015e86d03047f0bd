"""The right kind of truth for a case."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..cases.case import Case
from .composed_truth import ComposedTruth
from .truth import Truth

if TYPE_CHECKING:  # a Python that was built without SQLite has none
    from ..kept.store import Store


def truth_of(case: Case, store: Store | None, eps: str = "exact", running: str = "biased") -> Truth | ComposedTruth:
    """The exact values and envelopes of a case under the two conventions that change values; made once per case."""
    kind = ComposedTruth if case.record.composed or case.record.formula else Truth
    # Keys of the store cover this package's code, but not the code of an operator defined elsewhere.
    return case.truth(eps, running, partial(kind, store=None if case.record.file else store))
