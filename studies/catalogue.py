"""All studies, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from ..spec.errors import NormspecError, choices
from .covariate_shift import STUDY as COVARIATE_SHIFT
from .depth_dynamics import STUDY as DEPTH_DYNAMICS
from .eps_matters import STUDY as EPS_MATTERS
from .gradient_flow import STUDY as GRADIENT_FLOW
from .invariances import STUDY as INVARIANCES
from .loss_landscape import STUDY as LOSS_LANDSCAPE
from .norm_axes import STUDY as NORM_AXES
from .norm_position import STUDY as NORM_POSITION
from .residual_contributions import STUDY as RESIDUAL_CONTRIBUTIONS
from .study import Study

_IN_ORDER = (
    GRADIENT_FLOW,
    DEPTH_DYNAMICS,
    LOSS_LANDSCAPE,
    NORM_AXES,
    COVARIATE_SHIFT,
    NORM_POSITION,
    RESIDUAL_CONTRIBUTIONS,
    EPS_MATTERS,
    INVARIANCES,
)

#: In reading order.
STUDIES: Mapping[str, Study] = {one.name: one for one in _IN_ORDER}


class UnknownStudy(NormspecError):
    """No study has this name."""


def study_of(name: str) -> Study:
    """The study with this name. Raises UnknownStudy."""
    if name not in STUDIES:
        raise UnknownStudy(f"no study is called {name!r}{choices(name, STUDIES)}")
    return STUDIES[name]
