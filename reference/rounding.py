"""From results in double-double to float64, rounded once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .double_double import DD


def rounded(exact: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that calls `exact` and keeps, of each result, the nearest float64.

    `exact` returns a DD or a tuple of DDs and Nones; its name ends in `_exact`, which is dropped.
    """

    @functools.wraps(exact)
    def nearest(*args, **kwargs):
        results = exact(*args, **kwargs)
        if isinstance(results, DD):
            return results.hi
        return tuple(None if result is None else result.hi for result in results)

    nearest.__name__ = nearest.__qualname__ = exact.__name__.removesuffix("_exact")
    nearest.__annotations__ = {**exact.__annotations__, "return": "float64 arrays"}
    return nearest
