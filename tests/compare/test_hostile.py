"""For any behaviour of a target, there is a table."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from normspec.adapters.binding import Binding
from normspec.adapters.numpy import BRIDGE
from normspec.adapters.target import Target
from normspec.conformance.compare.run import compare
from normspec.conformance.reporting.comparison import print_comparison
from normspec.spec.errors import TargetLost
from normspec.spec.operators import OPERATORS

from .planted import BASES, target

pytestmark = pytest.mark.exhaustive  # it does not depend on the Python version


def _raises(*tensors, **settings):
    raise ValueError("[bold]no[/bold] | `never`\nnot at all")


def _wrong_shape(x, *rest, **settings):
    return _as_operator(np.zeros((3,), x.dtype), *rest)


def _wrong_dtype(x, *rest, **settings):
    return _as_operator(np.zeros(x.shape, np.float64 if x.dtype != np.float64 else np.float32), *rest)


def _no_array(x, *rest, **settings):
    return "y"


def _filled(value):
    def call(x, *rest, **settings):
        return _as_operator(np.full_like(x, value), *rest)

    return call


def _random(x, *rest, **settings):
    return _as_operator(np.random.default_rng().standard_normal(x.shape).astype(x.dtype), *rest)


def _mutating(x, *rest, **settings):
    x[...] = np.nan
    return _as_operator(x, *rest)


def _as_operator(y, *rest):
    """With running statistics, which batch_norm gets."""
    return (y, *rest[2:4]) if len(rest) == 4 else y


HOSTILE = {
    "raises": _raises,
    "wrong-shape": _wrong_shape,
    "wrong-dtype": _wrong_dtype,
    "no-array": _no_array,
    "nan": _filled(np.nan),
    "inf": _filled(-np.inf),
    "zero": _filled(0.0),
    "huge": _filled(6e4),
    "random": _random,
    "mutating": _mutating,
    "itself": lambda x, *rest, **settings: _as_operator(x, *rest),
}


def _own(call, operator):
    derivatives = {"vjp": call, "jvp": call, "vjp_vjp": call}
    binding = Binding(operator, "hostile", call, derivatives, defaults=call)
    return Target("hostile", "numpy", np.__version__, BRIDGE, (binding,))


def _printed(table, width=100):
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    print_comparison(table, console)
    return console.file.getvalue()


@pytest.mark.parametrize("operator", BASES)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_target_has_a_column(operator, name):
    """A target that raises, or returns nonsense, has its column next to a normal one."""
    table = compare([target(operator), _own(HOSTILE[name], operator)], op=operator)
    (section,) = table.sections
    assert all(len(row.cells) == 2 and row.cells[0].kind.value == "measured" for row in section.rows)
    assert table.exit_status == 0
    assert table.differences
    assert "Traceback" not in _printed(table)
    assert table.to_json()
    assert "hostile" in table.to_markdown()


@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.parametrize("operator", ["layer_norm", "batch_norm"])
def test_results_at_the_ends_of_float64_have_a_column(operator, size):
    """Their squares are no numbers, and that ends no run."""
    call = lambda x, *rest, **settings: _as_operator((x * size).astype(x.dtype), *rest)  # noqa: E731
    table = compare(_own(call, operator), op=operator, dtype="float64")
    assert table.exit_status == 0


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_raises_everywhere_says_so_everywhere(operator):
    """Every cell names the exception, and a table of nothing else has measured nothing."""
    table = compare(_own(_raises, operator), op=operator)
    cells = [cell for row in table.sections[0].rows for cell in row.cells]
    assert {cell.text for cell in cells} == {"raises ValueError"}
    assert table.exit_status == 2


def test_what_a_target_says_is_no_markup():
    """Brackets and bars in a message are printed as they are."""
    table = compare([target("layer_norm"), _own(_raises, "layer_norm")], op="layer_norm")
    assert "[bold]no[/bold] | `never`" in _printed(table)


def test_a_target_that_is_lost_is_left_alone():
    """After a few losses it gets no more calls, and the run is partial."""
    calls = []

    def lost(*tensors, **settings):
        calls.append(1)
        raise AssertionError

    class Gone(Target):
        def session(self, binding, device="cpu"):
            class Session:
                def start(self, *arguments, **options):
                    calls.append(1)
                    raise TargetLost("ended its process")

                jvp = vjp_vjp = start

            return Session()

    binding = Binding("layer_norm", "gone", lost, defaults=lost)
    gone = Gone("gone", "numpy", "0", BRIDGE, (binding,))
    table = compare([target("layer_norm"), gone], op="layer_norm")
    assert {row.cells[1].text for row in table.sections[0].rows} <= {"lost"}
    assert len(calls) <= 6
    assert table.exit_status == 3
    assert "the target ended its process" in _printed(table)
