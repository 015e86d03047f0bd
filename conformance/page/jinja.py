"""Whether a page can be made here: checked before a run begins, so that no run is wasted."""

from __future__ import annotations

import importlib.util

from ...spec.errors import NormspecError
from ...spec.extras import how_to_add


class NoJinja(NormspecError):
    """The package that fills in the page is not installed."""


def ensure_jinja() -> None:
    """Raise NoJinja if Jinja2 is not installed."""
    if importlib.util.find_spec("jinja2") is None:
        raise NoJinja(f"Jinja2, which fills in the page, is not installed: {how_to_add('html')}")
