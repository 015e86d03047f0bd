"""
Descriptions as Hypothesis draws them: to shrink a case that fails, and to explore beyond the deck in the tests.

What a run judges is not drawn here (see generate.py): what Hypothesis draws from a seed changes with its version.
Everything is drawn as an integer between -100 and 100: Hypothesis mixes constants that it harvests from the user's
modules into what it draws, but never integers of that size. There is no example database. Each list is ordered from
the plainest to the oddest, which is the way that shrinking goes.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Callable, Iterator

import attrs
import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, configuration
from hypothesis import strategies as st
from hypothesis.errors import Flaky, NoSuchExample

from ...spec.operators import OPERATORS
from .description import Description
from .generate import COMPOSED_LENGTHS, COUNTS, EPS, INDICES, LENGTHS, MOMENTA
from .logits import FUSIONS, GATES
from .parameters import AFFINE, COTANGENT
from .recipes import RECIPES
from .regimes import GENERATED, REGIMES

SHORT_LENGTHS = (2, 3, 4, 1)


def _one_of(choices: tuple[object, ...]) -> st.SearchStrategy[object]:
    return st.integers(0, len(choices) - 1).map(choices.__getitem__)


@st.composite
def descriptions(draw: st.DrawFn, like: Description, *, short: bool = False) -> Description:
    """Draw a description: short ones keep the requirements, mode and seed of the one they are to replace."""
    regimes = GENERATED
    if short:  # whatever the case had beyond the generated regimes stays within reach
        used = tuple(name for name, _ in like.groups if name not in regimes)
        regimes += tuple(dict.fromkeys(used))
    count = draw(st.integers(1, 3 if short else 12))
    groups = tuple((str(draw(_one_of(regimes))), draw(st.integers(0, INDICES - 1))) for _ in range(count))
    description = attrs.evolve(
        like,
        n=draw(_one_of(SHORT_LENGTHS if short else LENGTHS)),
        groups=groups,
        eps=draw(_one_of(EPS)),
        gamma=draw(_one_of(AFFINE)),
        beta=draw(_one_of(AFFINE)),
        cotangent=draw(_one_of(COTANGENT)),
        repeat=None,
        features=None,
        leading=None,
    )
    if short and like.features is not None and len(like.features) > 1 and draw(st.integers(0, 1)):
        description = attrs.evolve(description, n=4, features=(2, 2))
    if short:
        count = draw(st.integers(1, like.count)) if OPERATORS[like.operator].has_branches else like.count
        return attrs.evolve(description, eps=draw(_one_of((like.eps, *EPS))), count=count)
    if OPERATORS[like.operator].composed:
        return attrs.evolve(
            description,
            n=draw(_one_of(COMPOSED_LENGTHS)),
            recipe=draw(_one_of(tuple(RECIPES[like.operator]))),
            logits=draw(_one_of(GATES if OPERATORS[like.operator].has_gates else FUSIONS)),
            count=draw(_one_of(COUNTS)),
        )
    return attrs.evolve(description, momentum=draw(_one_of(MOMENTA)), rank=draw(st.integers(2, 5)))


def _settings(examples: int, *phases: Phase) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=examples,
        phases=phases,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        verbosity=Verbosity.quiet,
    )


@contextlib.contextmanager
def _without_a_trace() -> Iterator[None]:
    """Keep what Hypothesis caches on disk out of the user's folder."""
    before = vars(configuration).get("__hypothesis_home_directory")
    with tempfile.TemporaryDirectory() as scratch:
        configuration.set_hypothesis_home_dir(scratch)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(before)


def smallest(like: Description, fails: Callable[[Description], bool], *, examples: int = 80) -> Description | None:
    """Return the smallest short description that still fails, or None where no short one does."""
    try:
        with _without_a_trace():
            return hypothesis.find(
                descriptions(like, short=True),
                fails,
                settings=_settings(examples, Phase.generate, Phase.shrink),
                random=random.Random(like.seed),
            )
    except (NoSuchExample, Flaky):  # flaky: the target does not do the same twice
        return None


assert max(map(len, (GENERATED, REGIMES, AFFINE, LENGTHS))) < 100
