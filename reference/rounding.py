"""Functions that round double-double results once to float64."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from .double_double import DD

P = ParamSpec("P")
Array: TypeAlias = NDArray[np.float64]
#: The result types of the exact functions.
_Statistics: TypeAlias = tuple[DD, DD, DD]
_Gradients: TypeAlias = tuple[DD, "DD | None", "DD | None"]
_Second: TypeAlias = tuple[DD, "DD | None", DD]
_OfGamma: TypeAlias = tuple[DD, "DD | None"]


@overload
def rounded(exact: Callable[P, DD]) -> Callable[P, Array]: ...
@overload
def rounded(exact: Callable[P, _Statistics]) -> Callable[P, tuple[Array, Array, Array]]: ...
@overload
def rounded(exact: Callable[P, _Second]) -> Callable[P, tuple[Array, Array | None, Array]]: ...
@overload
def rounded(exact: Callable[P, _Gradients]) -> Callable[P, tuple[Array, Array | None, Array | None]]: ...
@overload
def rounded(exact: Callable[P, _OfGamma]) -> Callable[P, tuple[Array, Array | None]]: ...
def rounded(exact: Callable[..., Any]) -> Callable[..., Any]:
    """
    Return a function that calls ``exact`` and rounds each result to the nearest float64.

    ``exact`` returns a DD or a tuple of DDs and Nones. The new function's name drops the ending ``_exact``.
    """

    @functools.wraps(exact)
    def nearest(*args: Any, **kwargs: Any) -> Any:
        results = exact(*args, **kwargs)
        if isinstance(results, DD):
            return results.hi
        return tuple(None if result is None else result.hi for result in results)

    nearest.__name__ = nearest.__qualname__ = exact.__name__.removesuffix("_exact")
    # functools.wraps makes help() show the signature of `exact`, which returns other types.
    returns = exact.__annotations__["return"].replace("DD", "np.ndarray")
    nearest.__annotations__ = {**exact.__annotations__, "return": returns}
    nearest.__signature__ = inspect.signature(exact).replace(return_annotation=returns)  # type: ignore[attr-defined]
    return nearest
