"""Blocks of README and docs/ that need JAX, Flax or Equinox run as shown."""

from __future__ import annotations

import pytest

from ..blocks import pages_of, run_page

HOME = "jax"


@pytest.mark.parametrize("page", pages_of(HOME))
def test_what_a_page_shows_runs(page, tmp_path):
    """The blocks of a page, in their order."""
    run_page(page, HOME, tmp_path)
