"""
Generated cases: the cases that a run judges in addition to the fixed deck.

There are two kinds. *Free* cases may be anything. *Variations* keep the purpose of a case of the deck (its
requirements, kinds of groups and recipe) and change all its numbers, so that every requirement meets more cases than
the deck has. Each case is drawn from its own stream of our own generator: the same seed gives the same cases whatever
else is installed, and a deeper profile has all cases of the one before, and more.
"""

from __future__ import annotations

import math
import zlib

import attrs

from ...spec.operators import OPERATORS
from . import composed_deck
from .deck import DERIVATIVES, LAWS, deck
from .description import Description
from .logits import FUSIONS, GATES
from .parameters import AFFINE, COTANGENT
from .recipes import ALONG_SEQUENCE, RECIPES
from .regimes import GENERATED
from .stream import Stream

#: Each is exact, or rounds to float32 in the same way by every framework's default.
EPS = (2.0**-10, 1e-5, 1e-3, 0.5, 1e-6, 1e-12, 2.0**-20, 1.0)
LENGTHS = (2, 3, 4, 1, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100)
#: Composed operators: numbers of features, whose square is the size of a matrix, and numbers of branches.
COMPOSED_LENGTHS = (2, 3, 4, 1, 5, 7, 8, 9, 16, 17)
COUNTS = (2, 3, 1, 4, 5, 8, 12)
MOMENTA = (0.25, 0.1, 0.9, 0.5, 0.0, 1.0, 0.01, 0.001)
#: The number of members of a regime's family from which one is drawn.
INDICES = 12
#: The most groups of a free case.
GROUPS = 12

#: Kinds of gamma and beta that may replace one another. None, ones and zeros are a purpose of a case and stay.
_ANY_AFFINE = ("mixed", "powers", "large", "small")
#: Keys that tell the stream of a free case from that of a variation.
_FREE, _VARIED = 1, 2
#: Each round of variations draws its values from seeds of its own, beyond the seeds that a user gives.
_ROUND = 1 << 64


def generate(operator: str, seed: int, free: int, rounds: int = 0) -> list[Description]:
    """Return ``free`` free cases of an operator, and ``rounds`` variations of each case of its deck."""
    found = [_free(operator, seed, index) for index in range(free)]
    for number in range(1, rounds + 1):
        kept = (
            one for one in deck(operator, "quick", seed) if not (one.large or one.requirements & {"CM-S1", "CM-P2"})
        )
        found += [
            _varied(one, _stream(operator, seed, _VARIED, number, place), number) for place, one in enumerate(kept)
        ]
    return found


def _stream(operator: str, *key: int) -> Stream:
    return Stream(zlib.crc32(operator.encode()), *key)


# Free cases -------------------------------------------------------------------------------------------------


def _free(operator: str, seed: int, index: int) -> Description:
    stream = _stream(operator, seed, _FREE, index)
    inference = OPERATORS[operator].has_modes and index % 5 == 4
    groups = tuple((stream.pick(GENERATED), stream.number(0, INDICES - 1)) for _ in range(stream.number(1, GROUPS)))
    description = Description(
        operator,
        stream.pick(LENGTHS),
        groups,
        eps=stream.pick(EPS),
        gamma=stream.pick(AFFINE),
        beta=stream.pick(AFFINE),
        cotangent=stream.pick(COTANGENT),
        seed=seed,
        training=not inference,
    )
    if OPERATORS[operator].composed:
        description = attrs.evolve(
            description,
            n=stream.pick(COMPOSED_LENGTHS),
            recipe=stream.pick(tuple(RECIPES[operator])),
            logits=stream.pick(GATES if OPERATORS[operator].has_gates else FUSIONS),
            count=stream.pick(COUNTS),
        )
    else:
        description = attrs.evolve(description, momentum=stream.pick(MOMENTA), rank=stream.number(2, 5))
    if OPERATORS[operator].channels_alone and description.n == 1:  # one value a channel: BN-E1, BN-E5 and IN-E1
        description = attrs.evolve(description, n=2)
    return attrs.evolve(description, requirements=_purpose(description, index))


def _purpose(description: Description, index: int) -> frozenset[str]:
    """A free case's requirements besides the values: one case in four takes the laws, one in four the derivatives."""
    composed = OPERATORS[description.operator].composed
    names = {name for name, _ in description.groups}
    # Laws and derivatives run on moderate groups, because extreme ones are outside their range rules.
    moderate = not names & {"near_overflow", "subnormal", "heavy_tailed", "offset"}
    if moderate and description.recipe not in ALONG_SEQUENCE:
        if index % 4 == 1 and description.n > 1:
            return composed_deck.LAWS if composed else LAWS
        if index % 4 == 3:
            return composed_deck.DERIVATIVES if composed else DERIVATIVES
    return frozenset()


# Variations -------------------------------------------------------------------------------------------------


def _varied(description: Description, stream: Stream, number: int) -> Description:
    """A case of the same kind, with other numbers wherever its purpose leaves them open."""
    return attrs.evolve(
        description,
        **_shape(description, stream),
        groups=tuple((name, stream.number(0, INDICES - 1)) for name, _ in description.groups),
        eps=_eps(description, stream),
        gamma=_affine(description.gamma, stream),
        beta=_affine(description.beta, stream),
        cotangent=stream.pick(COTANGENT),
        momentum=stream.pick(MOMENTA),
        seed=description.seed + number * _ROUND,
    )


def _shape(description: Description, stream: Stream) -> dict[str, object]:
    """Another length of the groups: still few values if the case is about few, and each of several axes by itself."""
    if description.features is not None:
        features = tuple(stream.number(1, 2 * size - 1) for size in description.features)
        if max(features) == 1:  # a single value would be another kind of case
            features = (*features[:-1], 2)
        return {"features": features, "n": math.prod(features)}
    n = description.n
    if n == 1 or description.leading is not None or "MH-L7" in description.requirements:
        return {}
    if OPERATORS[description.operator].has_channels and "LN-F7" in description.requirements:
        # A multiple, so that its dimensions still divide it.
        return {"n": n * stream.number(1, 3)}
    if description.requirements & {"LN-F2", "PR-F7", "PO-F7"}:
        return {"n": stream.number(2, 5)}
    around = tuple(length for length in LENGTHS if n / 2 <= length <= 2 * n and length > 1)
    return {"n": stream.pick(around or (n,))}


def _eps(description: Description, stream: Stream) -> float:
    """Another eps, if it is an ordinary one. Derivatives keep theirs, so that they stay in range."""
    if description.eps not in EPS or description.requirements & {"LN-G9", "RS-G4"}:
        return description.eps
    return stream.pick(EPS)


def _affine(kind: str, stream: Stream) -> str:
    return stream.pick(_ANY_AFFINE) if kind in ("mixed", "large", "small") else kind
