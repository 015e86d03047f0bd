"""The user's own functions: operator, signature, framework and derivatives."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from normspec.adapters.own_function import names_a_function
from normspec.adapters.targets import resolve
from normspec.spec.errors import (
    BadSibling,
    UnknownConvention,
    UnknownFramework,
    UnknownOperator,
    WrongEntry,
    WrongSignature,
)

DEFAULT = np.zeros(100)


def layer_norm(x, gamma, beta, *, eps, axes):
    """Stand in for a user's function."""
    return x


def layer_norm_vjp(x, gamma, beta, g, *, eps, axes):
    """Stand in for its gradient."""
    return g, None, None


class Callable:
    """Stand in for a user's layer object."""

    def __call__(self, x, gamma, beta, *, eps, axes):
        return x

    def vjp(self, x, gamma, beta, g, *, eps, axes):
        """Stand in for its gradient."""
        return g, None, None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("layers.py:layer_norm", True),
        (r"C:\code\layers.py:layer_norm", True),
        (r"C:\code\layers.py", False),
        ("C:/code/layers.py", False),
        ("package.module:NAME", True),
        ("numpy", False),
        (":layer_norm", False),
        ("layers.py:", False),
    ],
)
def test_form_of_a_name(text, expected):
    """The last colon divides the place from the name, unless it is a drive letter's."""
    assert names_a_function(text) is expected


def test_function_named_after_its_operator():
    """A callable named after an operator implements it, and its siblings are its derivatives."""
    target = resolve(layer_norm, framework="numpy")
    (binding,) = target.bindings
    assert (binding.operator, binding.name, binding.call) == ("layer_norm", "layer_norm", layer_norm)
    assert dict(binding.derivatives) == {"vjp": layer_norm_vjp}
    assert target.dtypes == ("float16", "bfloat16", "float32", "float64")


def test_instance_brings_its_derivatives():
    """An object that can be called may hold its derivatives as attributes."""
    (binding,) = resolve(Callable(), op="layer_norm", framework="numpy").bindings
    assert set(binding.derivatives) == {"vjp"}
    assert binding.name == "Callable"


def test_partial_and_lambda():
    """A partial is named after its function; a lambda needs --op."""

    def batch_norm(scale, x, gamma, beta, running_mean, running_var, *, eps, momentum, training, channel_axis):
        return x

    assert resolve(functools.partial(batch_norm, 2.0), framework="numpy").bindings[0].operator == "batch_norm"
    (binding,) = resolve(lambda x, g, b, *, eps, axes: x, op="layer_norm", framework="numpy").bindings
    assert binding.operator == "layer_norm"


def test_dotted_name_in_a_file(write):
    """NAME may reach into an object of the file."""
    path = write(
        """
        import numpy
        class Layers:
            @staticmethod
            def layer_norm(x, gamma, beta, *, eps, axes): return x
            @staticmethod
            def batch_norm(x, gamma): return x
        """
    )
    assert resolve(f"{path}:Layers.layer_norm").bindings[0].operator == "layer_norm"
    with pytest.raises(WrongSignature, match=r"Layers\.batch_norm"):
        resolve(f"{path}:Layers.batch_norm")


def test_siblings_in_a_file(write):
    """NAME_vjp, NAME_jvp and NAME_vjp_vjp next to NAME are its derivatives, whatever NAME is."""
    path = write(
        """
        import numpy
        def ln(x, gamma, beta, *, eps, axes): return x
        def ln_vjp(x, gamma, beta, g, *, eps, axes): return g, None, None
        def ln_jvp(x, gamma, beta, tx, tgamma, tbeta, *, eps, axes): return tx
        ln_vjp_vjp = None
        """
    )
    (binding,) = resolve(f"{path}:ln", op="layer_norm").bindings
    assert set(binding.derivatives) == {"vjp", "jvp"}
    assert binding.name == f"{path}:ln"


def test_a_sibling_that_is_no_function_is_not_taken_for_a_missing_one(write):
    """Otherwise its gradients would be unsupported, and the function would conform."""
    source = "import numpy\ndef layer_norm(x, gamma, beta, *, eps, axes): return x\nlayer_norm_vjp = (len,)\n"
    with pytest.raises(BadSibling, match="layer_norm_vjp is tuple, which cannot be called: make it a function"):
        resolve(f"{write(source)}:layer_norm")


@pytest.mark.parametrize(
    ("name", "op", "message"),
    [
        ("ln", None, "which operator is .*ln.* --op, one of layer_norm, batch_norm"),
        ("ln", ["layer_norm", "batch_norm"], "implements one operator: give one of layer_norm, batch_norm"),
    ],
)
def test_operator_cannot_be_told(write, name, op, message):
    """A name that does not reveal the operator needs --op."""
    path = write(f"import numpy\ndef {name}(*a, **k): pass")
    with pytest.raises(UnknownOperator, match=message):
        resolve(f"{path}:{name}", op=op)


@pytest.mark.parametrize(
    ("signature", "lacking"),
    [
        ("x, transform, gate", {"carry"}),
        ("x, transform, gate, carry=None", set()),
        ("x, transform, gate, *, carry=None", set()),
        ("x, transform, gate, **others", set()),
        ("*arguments", {"carry"}),
    ],
)
def test_optional_arguments_may_be_lacking(write, signature, lacking):
    """A function without an optional keyword argument is a target that lacks it, however it is written."""
    path = write(f"import numpy\ndef highway({signature}): pass")
    (binding,) = resolve(f"{path}:highway").bindings
    assert binding.unsupported_keywords == lacking


def test_one_operator_of_several(write):
    """If several operators are requested, the one that the function is named after counts."""
    path = write("import numpy\ndef layer_norm(x, gamma, beta, *, eps, axes): pass")
    (binding,) = resolve(f"{path}:layer_norm", op=["batch_norm", "layer_norm"]).bindings
    assert binding.operator == "layer_norm"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x, r"\(x\) cannot be called as layer_norm\(x, gamma, beta, \*, eps, axes\): too many positional"),
        (lambda x, gamma, beta, *, axes: x, "unexpected keyword argument 'eps'"),
        (lambda x, gamma, beta, scale, *, eps, axes: x, "missing a required argument: 'scale'"),
        (
            lambda x, gamma, beta, *, eps, axes, stash: x,
            "missing a required.*argument: 'stash'; nothing is passed as st",
        ),
        (lambda x, weight, bias, *, epsilon, axis: x, "nothing is passed as axis: write a function layer_norm"),
        (Callable.__call__, "it is a method of a class: check that of an object"),
        (lambda x, axes, gamma, beta, eps: x, "gamma does not stand where gamma is passed, and no declaration"),
        (Callable, "Callable is a class: give a function, or an instance"),
    ],
)
def test_wrong_signature(function, message):
    """A function that does not fit the canonical call is refused; the message shows both signatures."""
    with pytest.raises(WrongSignature, match=message):
        resolve(function, op="layer_norm", framework="numpy")


@pytest.mark.parametrize(
    ("function", "operator", "name"),
    [
        (lambda x, gamma, beta, sublayer, *, eps: x, "pre_norm", "gamma"),
        (lambda x, gate, transform: x, "highway", "gate"),
        (lambda x, beta, gamma, *, eps, axes: x, "layer_norm", "beta"),
        (lambda x, bias, weight, *, eps, axes: x, "layer_norm", "bias"),
        (lambda gamma, beta, x, *, eps, axes: x, "layer_norm", "gamma"),
        (lambda x, beta, gamma, *, eps, groups, channel_axis: x, "group_norm", "beta"),
        (
            lambda x, running_mean, running_var, gamma, beta, *, eps, momentum, training, channel_axis: x,
            "batch_norm",
            "running_mean",
        ),
    ],
)
def test_a_name_in_another_place(function, operator, name):
    """Tensors and parts are passed by position, so that each would get another: gamma beta, a sublayer gamma."""
    with pytest.raises(WrongSignature, match=rf"has {name} in another place than {operator}\(x, .*: put it there"):
        resolve(function, op=operator, framework="numpy")


def test_a_vjp_with_other_arguments_is_refused():
    """It would raise at each call: nothing would be judged, and nothing told of what it lacks."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        return x

    layer_norm.vjp = lambda x, gamma, beta, *, eps, axes: x
    told = (
        r"vjp\(x, gamma, beta, \*, eps, axes\) cannot be called as layer_norm_vjp\(x, gamma, beta, g, \*, eps, axes\)"
    )
    with pytest.raises(WrongSignature, match=told):
        resolve(layer_norm, framework="numpy")


@pytest.mark.parametrize("function", [lambda x, weight, bias, *, eps, axes: x, lambda x, g, b, *, eps, axes: x])
def test_usual_names_in_their_place(function):
    """They are those of gamma and beta."""
    assert resolve(function, op="layer_norm", framework="numpy").bindings


def test_signature_is_shown_without_its_objects():
    """Defaults and annotations, which may be anything, are left out of the message."""

    def layer_norm(x: np.ndarray, scale=DEFAULT) -> None:
        """Take the wrong arguments."""

    with pytest.raises(WrongSignature, match=r"layer_norm\(x, scale=\.\.\.\) cannot be called"):
        resolve(layer_norm, framework="numpy")


def test_async_functions_are_refused():
    """A coroutine would have to be awaited."""

    async def layer_norm(x, gamma, beta, *, eps, axes):
        """Return in the future."""

    with pytest.raises(WrongSignature, match="is async"):
        resolve(layer_norm, framework="numpy")


def test_name_that_is_no_function(write):
    """A name that holds something else is refused."""
    path = write("import numpy\nlayer_norm = 3")
    with pytest.raises(WrongSignature, match="is int, which cannot be called"):
        resolve(f"{path}:layer_norm")


def test_what_cannot_be_inspected_is_taken_as_it_is():
    """C functions without a signature are called and seen."""
    assert resolve(min, op="layer_norm", framework="numpy").bindings[0].call is min


def test_hostile_signature_is_taken_as_it_is():
    """An object whose signature raises is simply called."""

    class Hostile(Callable):
        @property
        def __signature__(self):
            raise RuntimeError

    assert resolve(Hostile(), op="layer_norm", framework="numpy").bindings


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np",
        "from numpy import mean",
        "import ml_dtypes",
        "def helper():\n    import numpy",
    ],
)
def test_framework_from_imports(write, source):
    """A file's imports, at its top or inside a function, say whose arrays it takes."""
    path = write(f"{source}\ndef layer_norm(x, gamma, beta, *, eps, axes): return x")
    assert resolve(f"{path}:layer_norm").framework == "numpy"


def test_framework_of_a_callable():
    """A callable's module says whose arrays it takes."""
    assert resolve(layer_norm).framework == "numpy"
    assert resolve(Callable(), op="layer_norm").framework == "numpy"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import math", "imports no framework: say which one it is for with --framework, one of numpy, torch"),
        ("def f():\n    import torch, jax", "imports jax and torch: say which one it is for with --framework"),
        ("def f():\n    import paddle", "is written for paddle, which has no bridge; choose from numpy, torch"),
    ],
)
def test_framework_cannot_be_told(write, source, message):
    """Imports of no framework, or of several, need --framework."""
    path = write(f"{source}\ndef layer_norm(x, gamma, beta, *, eps, axes): return x")
    with pytest.raises(UnknownFramework, match=message):
        resolve(f"{path}:layer_norm")
    assert resolve(f"{path}:layer_norm", framework="numpy").framework == "numpy"


def test_conventions_beside_a_function(write):
    """NAME_conventions has the function's declarations; an unknown one, or anything but a dict, is one clear error."""
    source = """
        import numpy as np

        def layer_norm(x, gamma, beta, *, eps, axes):
            return x

        layer_norm_conventions = {}
    """
    path = write(source.format("{'storage': 'H2', 'float64': 'float32'}"))
    (binding,) = resolve(f"{path}:layer_norm").bindings
    assert binding.conventions == {"storage": "H2", "float64": "float32"}
    with pytest.raises(UnknownConvention, match=r"wrong\.py:layer_norm_conventions: convention storage has no value"):
        resolve(f"{write(source.format({'storage': 'H9'}), 'wrong.py')}:layer_norm")
    with pytest.raises(BadSibling, match="layer_norm_conventions has 3, which is not a text"):
        resolve(f"{write(source.format({'storage': 'H2', 'nonsense': 3}), 'number.py')}:layer_norm")
    with pytest.raises(BadSibling, match="layer_norm_conventions is list: make it a dict"):
        resolve(f"{write(source.format(['storage=H2']), 'listed.py')}:layer_norm")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("{'LN-F3': ''}", "layer_norm_expected: the known violation of LN-F3 has no reason"),
        ("{'LN-F3': 3}", "layer_norm_expected has 3, which is not a text"),
        ("('LN-F3', 'why')", r"layer_norm_expected: a known violation is a normspec\.KnownViolation, not str"),
        ("{'LN-F0': 'why'}", "layer_norm_expected: no requirement is called 'LN-F0'"),
        ("5", "layer_norm_expected is int: make it a tuple"),
    ],
)
def test_known_violations_beside_a_function_that_make_no_sense(write, entries, message):
    """One clear error says where they stand and what is wrong with them."""
    path = write(f"""
        import numpy as np

        def layer_norm(x, gamma, beta, *, eps, axes):
            return x

        layer_norm_expected = {entries}
    """)
    with pytest.raises((BadSibling, WrongEntry), match=message):
        resolve(f"{path}:layer_norm")


@pytest.mark.parametrize("name", ["numpy", "torch", "keras", "onnx"])
def test_a_function_named_like_a_framework_is_no_framework(write, name):
    """What is known of a framework's layers by their target's name is not about it, in a file or as an object."""
    file = write(f"import numpy as np\n\ndef {name}(x, gamma, beta, *, eps, axes):\n    return np.copy(x)\n")
    found = resolve(f"{file}:{name}", op="layer_norm")
    assert (found.name, found.framework) == (f"{file}:{name}", "numpy")

    def function(x, gamma, beta, *, eps, axes):
        return x + DEFAULT[0]

    function.__name__ = name
    found = resolve(function, op="layer_norm")
    assert (found.name, found.framework) == (f"{__name__}:{name}", "numpy")
    assert [one.name for one in found.bindings] == [found.name]
