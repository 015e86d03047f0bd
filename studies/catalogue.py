"""All studies, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from ..spec.errors import NormspecError, choices
from . import covariate_shift, depth_dynamics, eps_matters, gradient_flow, invariances, norm_axes
from .study import Study

#: In the order in which they are read.
STUDIES: Mapping[str, Study] = {
    one.name: one
    for one in (
        gradient_flow.STUDY,
        depth_dynamics.STUDY,
        norm_axes.STUDY,
        covariate_shift.STUDY,
        eps_matters.STUDY,
        invariances.STUDY,
    )
}


class UnknownStudy(NormspecError):
    """No study has this name."""


def study_of(name: str) -> Study:
    """The study of this name. Raises UnknownStudy."""
    if name not in STUDIES:
        raise UnknownStudy(f"no study is called {name!r}{choices(name, STUDIES)}")
    return STUDIES[name]
