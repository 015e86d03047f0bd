"""The sound variants of the composed operators agree with the formulas, and keep the contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from normspec.conformance.sound import DECLARED, SOUND, Sound
from normspec.spec.parts import Part

from .formulas import slope, value, widened
from .probes import DTYPES, normal
from .situations import PARAMETERS, Composition, composition, leaf, linear, tanh_linear

pytestmark = pytest.mark.exhaustive

OPERATORS = tuple(PARAMETERS)
COMPOSED = [sound for sound in SOUND if sound.operator in OPERATORS]
every_sound = pytest.mark.parametrize("sound", COMPOSED, ids=lambda sound: sound.name)
every_declared = pytest.mark.parametrize(
    "sound",
    [s for s in DECLARED if s.operator in OPERATORS and "float64" not in s.conventions],
    ids=lambda sound: sound.name,
)

#: Loose: the envelope judges properly elsewhere. Some units in the last place of values up to about 10.
TOLERANCE = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 1e-4, "float64": 1e-11}


def situations(operator: str, dtype: Any) -> dict[str, Composition]:
    """The situations in which a variant is tried, by what is special about them."""
    n = 6
    w = normal(n, n, seed=50) / (2 * n)
    h, z = normal(5, n, seed=51), normal(5, n, seed=52) * 2

    def with_parts(inputs: dict[str, Any], **parts: Any) -> Composition:
        return composition(operator, dtype, inputs=inputs, parts=parts)

    found = {"plain": composition(operator, dtype), "one row": composition(operator, dtype, shape=(1, n))}
    found["one axis"] = composition(operator, dtype, shape=(7,))
    found["three axes"] = composition(operator, dtype, shape=(2, 3, n))
    if operator == "residual":
        found["shortcut"] = with_parts({"shortcut.w": w}, shortcut=linear("shortcut.w"))
        found["activation"] = with_parts({"shortcut.w": w}, shortcut=tanh_linear("shortcut.w"), activation=Part("tanh"))
        found["rectified"] = with_parts({"free.h": h}, branch=leaf("free.h"), activation=Part("relu"))
    elif operator in ("pre_norm", "post_norm"):
        found["no gamma"] = with_parts({"gamma": None})
        found["neither"] = with_parts({"gamma": None, "beta": None})
        found["zero"] = with_parts({}, sublayer=Part("zero"))
        found["square"] = with_parts({}, sublayer=Part("square"))
    elif operator == "highway":
        found["carry"] = with_parts({"carry.w": w * 3}, carry=tanh_linear("carry.w"))
        found["leaves"] = with_parts({"free.h": h, "free.z": z}, transform=leaf("free.h"), gate=leaf("free.z"))
        found["both"] = with_parts(
            {"free.h": h, "free.z": z, "free.c": -z},
            transform=leaf("free.h"),
            gate=leaf("free.z"),
            carry=leaf("free.c"),
        )
    else:
        found["one branch"] = composition(operator, dtype, count=1)
        found["twelve branches"] = composition(operator, dtype, count=12)
        found["coupled"] = with_parts({}, fuse=Part("fuse_coupled"))
        found["weighted"] = with_parts({"fuse.a": normal(3, n, seed=53)}, fuse=Part("fuse_weighted", ("fuse.a",)))
    return found


def close(got: Any, want: Any, tolerance: float, what: str) -> None:
    """A result is within the tolerance of its exact value, relative to the largest."""
    assert not isinstance(got, str), (what, got)
    scale = 1 + np.abs(want).max(initial=0)
    assert np.shape(got) == np.shape(want), what
    assert np.abs(np.asarray(got, np.float64) - want).max(initial=0) <= tolerance * scale, what


@every_sound
@pytest.mark.parametrize("dtype", DTYPES)
def test_variants_agree_with_the_formulas(sound: Sound, dtype: str) -> None:
    """y is that of the formulas, in every dtype."""
    for what, s in situations(sound.operator, DTYPES[dtype]).items():
        y = s.call(sound.build())
        close(y, value(s, widened(s)), TOLERANCE[dtype], what)
        assert y.dtype == s.inputs["x"].dtype


@every_sound
def test_gradients_agree_with_differences_of_the_formulas(sound: Sound) -> None:
    """vjp and jvp in float64 are the central differences of the formulas."""
    for what, s in situations(sound.operator, np.float64).items():
        inputs, directions = widened(s), s.directions(7)
        ty = slope(lambda moved, s=s: value(s, moved), inputs, directions)
        close(s.jvp(sound.build(), directions), ty, 1e-7, what)
        gradients = [g for g in s.vjp(sound.build()) if g is not None]
        names = [name for name, a in s.inputs.items() if a is not None]
        ordered = [n for n in ("x", *PARAMETERS[s.operator]) if n in names]
        ordered += [n for n in names if n not in ordered]
        assert len(ordered) == len(gradients), what
        along = sum(float((g * directions[n]).sum()) for g, n in zip(gradients, ordered, strict=True))
        assert along == pytest.approx(float((ty * s.g).sum()), rel=1e-6, abs=1e-6), what


@every_sound
def test_second_order_agrees_with_differences_of_the_gradients(sound: Sound) -> None:
    """vjp_vjp in float64 is the central difference of the vjp, for inputs and for the cotangent."""
    for what, s in situations(sound.operator, np.float64).items():
        implementation, second, directions = sound.build(), s.directions(8), s.directions(9)
        names = [name for name, t in s.named_tensors() if t is not None]

        def paired(inputs: Any, s: Any = s, names: Any = names, second: Any = second, i: Any = implementation) -> float:
            moved = Composition(s.operator, inputs, s.parts, np.float64, eps=s.eps, g=s.g)
            found = [g for g in moved.vjp(i)[: len(names) + 2] if g is not None]
            return sum(float((g * second[n]).sum()) for g, n in zip(found, names, strict=False))

        *bars, g_bar = s.vjp_vjp(implementation, second)
        along = {name: directions[name] for name in names}
        got = sum(float((b * along[n]).sum()) for b, n in zip([b for b in bars if b is not None], names, strict=True))
        assert got == pytest.approx(slope(paired, widened(s), along), rel=1e-5, abs=1e-5), what
        assert float((g_bar * s.g).sum()) == pytest.approx(paired(s.inputs), rel=1e-9), what


@every_sound
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_derivatives_in_narrower_dtypes_agree_with_those_in_float64(sound: Sound, dtype: str) -> None:
    """Gradients, tangents and second-order gradients of the same inputs differ by roundings only."""
    for what, s in situations(sound.operator, DTYPES[dtype]).items():
        wide = Composition(s.operator, s.inputs, s.parts, np.float64, eps=s.eps, g=s.g)
        for name, one, other in (
            ("vjp", s.vjp(sound.build()), wide.vjp(sound.build())),
            ("jvp", (s.jvp(sound.build(), s.directions(3)),), (wide.jvp(sound.build(), s.directions(3)),)),
            ("vjp_vjp", s.vjp_vjp(sound.build(), s.directions(4)), wide.vjp_vjp(sound.build(), s.directions(4))),
        ):
            for got, want in zip(one, other, strict=True):
                if want is not None:
                    close(got, want, 4 * TOLERANCE[dtype], f"{what}, {name}")
                    assert got.dtype == s.inputs["x"].dtype


@every_sound
def test_parameters_may_be_wider(sound: Sound) -> None:
    """Beside 16-bit x the gradients of float32 gamma, beta and logits are float32."""
    s = composition(sound.operator, np.float16, parameters=np.float32)
    assert s.call(sound.build()).dtype == np.float16
    found = s.vjp(sound.build())[: len(s.tensors)]
    assert [g.dtype.name for g in found] == ["float16", *["float32"] * (len(found) - 1)]


@every_sound
def test_variants_neither_change_nor_share_what_they_are_handed(sound: Sound) -> None:
    """Nothing handed in is written to, and nothing handed out lies in its memory."""
    for s in situations(sound.operator, np.float64).values():
        arrays = [a for a in (*s.inputs.values(), s.g) if a is not None]
        before = [a.copy() for a in arrays]
        implementation = sound.build()
        (given, keywords), (again, _) = s.arguments(), s.arguments(notes={})
        results = [implementation.call(*given, **keywords), *implementation.vjp(*again, s.g, **keywords)]
        for a, b in zip(arrays, before, strict=True):
            assert a.tobytes() == b.tobytes()
        for result in results:
            assert result is None or not any(np.shares_memory(result, a) for a in arrays)


@every_sound
def test_variants_take_an_empty_batch(sound: Sound) -> None:
    """No rows give an empty y and zero gradients of the parameters."""
    s = composition(sound.operator, np.float32, shape=(0, 4))
    assert s.call(sound.build()).shape == (0, 4)
    dx, *others = s.vjp(sound.build())[: len(s.tensors)]
    assert dx.shape == (0, 4)
    assert all((other == 0).all() for other in others)


def parts_of(s: Composition) -> list[tuple[str, Any]]:
    """Every single part of a situation, with its role."""
    return [(role, part) for role, part in s.parts.items() if part is not None]


@every_sound
@pytest.mark.parametrize("kind", ["misshapen", "broadcasting", "raising"])
def test_variants_refuse_what_a_part_may_not_do(sound: Sound, kind: str) -> None:
    """A value of another shape raises ValueError, and what a part raises reaches the caller."""
    for role, part in parts_of(composition(sound.operator, np.float32)):
        wrong = (Part(kind, inner=(part[0],)), *part[1:]) if isinstance(part, tuple) else Part(kind, inner=(part,))
        s = composition(sound.operator, np.float32, parts={role: wrong})
        assert s.call(sound.build()) == ("PartRaised" if kind == "raising" else "ValueError")


@every_sound
def test_variants_call_each_part_once(sound: Sound) -> None:
    """A part that multiplies by the number of its calls multiplies by one, in every call."""
    for role, part in parts_of(composition(sound.operator, np.float32)):
        counted = tuple(Part("counted", inner=(one,)) for one in (part if isinstance(part, tuple) else (part,)))
        s = composition(sound.operator, np.float32, parts={role: counted if isinstance(part, tuple) else counted[0]})
        plain, implementation = composition(sound.operator, np.float32).call(sound.build()), sound.build()
        for _ in range(2):
            np.testing.assert_array_equal(s.call(implementation), plain)


@every_sound
def test_results_outlive_the_buffers_of_parts(sound: Sound) -> None:
    """What parts write into buffers of their own in a later call changes no earlier result."""
    plain = composition(sound.operator, np.float32)
    for role, part in parts_of(plain):
        held = tuple(Part("buffered", inner=(one,)) for one in (part if isinstance(part, tuple) else (part,)))
        parts = {role: held if isinstance(part, tuple) else held[0]}
        implementation = sound.build()
        first, later = (composition(sound.operator, np.float32, parts=parts, seed=seed) for seed in (1, 2))
        later.memory = first.memory
        given, keywords = first.arguments()
        y = implementation.call(*given, **keywords)
        later.call(implementation)
        np.testing.assert_array_equal(y, plain.call(sound.build()))


@every_sound
def test_variants_refuse_bad_arguments(sound: Sound) -> None:
    """A parameter or a cotangent of another shape, a negative eps and missing logits raise ValueError."""
    operator = sound.operator
    wrong = [composition(operator, np.float32, inputs={n: np.ones(7)}) for n in PARAMETERS[operator]]
    if operator in ("pre_norm", "post_norm"):
        wrong.append(composition(operator, np.float32, eps=-1.0))
    if operator == "mhc":
        wrong.append(composition(operator, np.float32, inputs={"logits": None}))
    for s in wrong:
        assert s.call(sound.build()) == "ValueError"
    assert composition(operator, np.float32, g=np.ones((5, 1))).vjp(sound.build()) == "ValueError"


@pytest.mark.parametrize("operator", OPERATORS)
def test_there_are_enough_variants(operator: str) -> None:
    """At least four variants an operator need no declaration, and their names are unique."""
    names = [sound.name for sound in (*SOUND, *DECLARED) if sound.operator == operator]
    assert len(names) == len(set(names))
    assert sum(sound.operator == operator for sound in SOUND) >= 4


@every_declared
@pytest.mark.parametrize("dtype", DTYPES)
def test_declared_variants_name_their_convention_and_agree_roughly(sound: Sound, dtype: str) -> None:
    """A declared variant says what it declares, and is near the formulas."""
    assert sound.conventions
    for what, s in situations(sound.operator, DTYPES[dtype]).items():
        close(s.call(sound.build()), value(s, widened(s)), 4 * TOLERANCE[dtype], what)
        for found in s.everything(sound.build()):
            assert not isinstance(found, str), (what, found)
