"""The option that somebody meant by one that does not exist: `--quick` is `--profile quick`."""

from __future__ import annotations

import click


def option_meant(error: click.NoSuchOption) -> str:
    """What was meant, such as `--profile quick`, if the unknown option is a value of one that the command has."""
    if error.ctx is None:
        return ""
    there = {name for one in error.ctx.command.params for name in one.opts}
    word = error.option_name.lstrip("-").lower()
    return next((f"{option} {value}" for option, value in _values(word) if option in there), "")


def _values(word: str) -> list[tuple[str, str]]:
    """The options that have this value, or one that it may stand for, each with the value."""
    # Loaded after a mistake alone, so that a command starts at once.
    from ...adapters.dtypes import CALLED, DTYPES
    from ...adapters.frameworks import FRAMEWORKS
    from ...spec.operators import operator_spelt
    from ..requests.bundles import BUNDLES
    from ..requests.mode import MODES
    from ..requests.profiles import PROFILES

    found = []
    profile = "quick" if word == "fast" else word
    if profile in PROFILES:
        found.append(("--profile", profile))
    dtype = CALLED.get(word, word)
    if dtype in DTYPES:
        found.append(("--dtype", dtype))
    if word.partition(":")[0] in ("cpu", "cuda", "gpu"):
        found.append(("--device", word))
    if operator := operator_spelt(word):
        found.append(("--op", operator))
    if word in FRAMEWORKS:
        found.append(("--framework", word))
    if word in MODES:
        found.append(("--mode", word))
    if word in BUNDLES:
        found.append(("--require", word))
    return found
