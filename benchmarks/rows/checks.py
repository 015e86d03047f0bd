"""How long a check takes: of a user's function, a framework, all frameworks; and an engineer's test for comparison."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from rows.row import DTYPES, Measured, NotThere, Row

FUNCTIONS = Path(__file__).parent.parent / "functions"
#: The shapes that an engineer would try.
SHAPES = ((4, 8), (3, 5, 64), (2, 128, 768), (1, 4096))


def kept(what: str, folder: str) -> dict[str, Any]:
    """The options of `check` that keep truths in a folder, or nowhere. Raises NotThere if a version cannot keep any."""
    import normspec

    if "cache" in inspect.signature(normspec.check).parameters:
        return {"cache": False if what == "nothing" else folder}
    if what != "nothing":
        raise NotThere("truths are not kept")
    return {}


def report(target: Any, what: str = "nothing", *, compiled: str = "cold", **options: Any) -> Any:
    """
    The report on a target; where truths and JAX's compilations are to be warm, a run before it has kept them.

    Its ``seconds`` do not include the imports: they start when the workers are ready.
    """
    import normspec

    with tempfile.TemporaryDirectory() as folder:
        options |= kept(what, f"{folder}/truths")
        # Otherwise a second run of the same target judges nothing.
        os.environ["NORMSPEC_RESULTS"] = "" if what == "unchanged" else "none"
        os.environ |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        os.environ |= {"JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
        os.environ["JAX_COMPILATION_CACHE_DIR"] = f"{folder}/before"
        if what in ("warm", "unchanged") or compiled == "warm":
            normspec.check(target, **options)
        if compiled == "cold":
            os.environ["JAX_COMPILATION_CACHE_DIR"] = f"{folder}/now"
        return normspec.check(target, **options)


def own(framework: str, profile: str, what: str, *, dtypes: tuple[str, ...] = DTYPES, compiled: str = "cold") -> float:
    """Seconds for a LayerNorm on a framework's tensors."""
    if importlib.util.find_spec(framework) is None:
        raise NotThere(f"{framework} is not installed")
    file = f"{FUNCTIONS / f'in_{framework}.py'}:layer_norm"
    only = {"forward_only": True} if framework == "numpy" else {}
    found = report(file, what, compiled=compiled, op="layer_norm", dtypes=dtypes, profile=profile, **only)
    assert found.conforms, [(one.requirement, one.dtype, one.reason) for one in (*found.failures(), *found.errors())]
    return found.seconds


def engineer() -> float:
    """Seconds for `randn` and `assert_close` in the four dtypes, values and gradients; of the second of two runs."""
    import torch
    from functions.in_torch import layer_norm

    def once() -> float:
        started = time.perf_counter()
        torch.manual_seed(0)
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            for shape in SHAPES:
                x, gamma, beta = (torch.randn(s, dtype=dtype).requires_grad_() for s in (shape, shape[-1:], shape[-1:]))
                g = torch.randn(shape, dtype=dtype)
                got = layer_norm(x, gamma, beta, eps=1e-5, axes=(-1,))
                wanted = torch.nn.functional.layer_norm(x, shape[-1:], gamma, beta, 1e-5)
                torch.testing.assert_close(got, wanted)
                gradients = [torch.autograd.grad(y, (x, gamma, beta), g) for y in (got, wanted)]
                if dtype.itemsize > 2:  # in 16 bits these pass no tolerance that one would choose
                    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
        return time.perf_counter() - started

    once()
    return once()


def own_torch(profile: str, what: str) -> Measured:
    """The check's seconds, and how often an engineer's own test would run in that time."""
    seconds = own("torch", profile, what)
    return {"": seconds, "times randn and assert_close": seconds / engineer()}


def seconds_of(measure: Any, **options: Any) -> Any:
    """A row's measure that returns one figure, the seconds."""
    return lambda what: {"": measure(what=what, **options)}


def named(targets: tuple[str, ...], profile: str, what: str) -> float:
    """Seconds for the named targets."""
    return report(targets, what, profile=profile).seconds


def frameworks(what: str) -> Measured:
    """Seconds for every framework that is installed here, and for each: one after the other, each on all cores."""
    from normspec.adapters.frameworks import KNOWN

    there = [
        name
        for name, known in KNOWN.items()
        if name != "numpy" and all(importlib.util.find_spec(package) for package in known.packages)
    ]
    if not there:
        raise NotThere("no framework is installed")
    found = {name: named((name,), "standard", what) for name in there}
    return {"": sum(found.values()), **found}


_jax = functools.partial(seconds_of, own, framework="jax")
ROWS = (
    Row("numpy-quick", "own LayerNorm in NumPy, forward, four dtypes, quick",
        seconds_of(own, framework="numpy", profile="quick"), judges=True),
    Row("numpy-standard", "own LayerNorm in NumPy, forward, four dtypes, standard",
        seconds_of(own, framework="numpy", profile="standard"), judges=True),
    Row("torch-own-quick", "own LayerNorm in PyTorch, four dtypes, quick",
        functools.partial(own_torch, "quick"), judges=True),
    Row("torch-own-standard", "own LayerNorm in PyTorch, four dtypes, standard",
        functools.partial(own_torch, "standard"), judges=True),
    Row("torch-quick", "check torch --profile quick",
        seconds_of(named, targets=("torch",), profile="quick"), judges=True),
    Row("jax-float32-cold", "own LayerNorm in JAX, float32, quick, nothing compiled yet",
        _jax(profile="quick", dtypes=("float32",)), judges=True),
    Row("jax-float32-warm", "own LayerNorm in JAX, float32, quick, compiled before",
        _jax(profile="quick", dtypes=("float32",), compiled="warm"), judges=True),
    Row("jax-cold", "own LayerNorm in JAX, four dtypes, quick, nothing compiled yet", _jax(profile="quick"),
        judges=True),
    Row("jax-warm", "own LayerNorm in JAX, four dtypes, quick, compiled before",
        _jax(profile="quick", compiled="warm"), judges=True),
    Row("jax-standard", "own LayerNorm in JAX, four dtypes, standard, nothing compiled yet", _jax(profile="standard"),
        judges=True),
    Row("frameworks", "every framework that is installed, standard", frameworks, judges=True, long=True),
)  # fmt: skip
