"""JAX's gradient of a clipped variance in bfloat16: right for few groups, without a term for many."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from normspec.adapters.jax.lost_variance import LOST_VARIANCE
from normspec.adapters.known import Failure

#: (0, 1, 5): mean 2, deviations (-2, -1, 3), variance 14/3; with the cotangent (1, 0, 0), all by hand.
GROUP, COTANGENT, DEVIATION, VARIANCE = (0.0, 1.0, 5.0), (1.0, 0.0, 0.0), (-2.0, -1.0, 3.0), 14 / 3


def _dx(groups: int) -> np.ndarray:
    """The gradient of jax.nn.standardize for this many copies of the group, in bfloat16."""
    x, g = (jnp.tile(jnp.array(one, jnp.bfloat16), (groups, 1)) for one in (GROUP, COTANGENT))
    return np.asarray(jax.vjp(lambda x: jax.nn.standardize(x, epsilon=0.0), x)[1](g)[0], np.float64)


@pytest.mark.parametrize(("groups", "lost"), [(4095, False), (4096, True)])
def test_from_4096_groups_on_the_term_of_the_variance_is_lost(groups, lost):
    """A change upstream is noticed here: then the known violation goes."""
    r = VARIANCE**-0.5
    centred = r * (np.array(COTANGENT) - 1 / 3)
    exact = centred - r * np.array(DEVIATION) / VARIANCE * (DEVIATION[0] / 3)
    off = np.abs(_dx(groups) - (centred if lost else exact)).max()
    assert off < 0.02 < np.abs(centred - exact).max()


def test_the_prediction_is_dx_without_that_term_alone():
    """Neither the right gradient nor one that is wrong in another way is covered."""
    (known,) = LOST_VARIANCE
    x, g = (np.tile(np.array(one), (4096, 1)) for one in (GROUP, COTANGENT))
    settings = {"eps": 0.0, "axes": (-1,)}
    inputs = {"x": x, "gamma": None, "beta": None}

    def covered(got: np.ndarray) -> np.ndarray:
        return known.covers(Failure("dx", "", inputs, settings, g=g, got=got, expected=got))

    centred = VARIANCE**-0.5 * (g - 1 / 3)
    exact = centred - VARIANCE**-1.5 * np.array(DEVIATION) * (DEVIATION[0] / 3)
    assert covered(centred).all()
    assert not covered(exact)[:, [0, 2]].any()
    assert not covered(1.5 * centred).any()
    few = {name: None if one is None else one[:4095] for name, one in inputs.items()}
    assert not known.shows_in(few, settings)
