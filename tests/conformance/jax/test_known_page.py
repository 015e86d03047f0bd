"""The table of known deviations agrees with the bindings."""

from __future__ import annotations

from normspec.adapters.targets import resolve

from ..known_page import the_page_tells


def test_the_page_tells_what_is_known() -> None:
    """The rows of the target on the page of conventions are those that its bindings make."""
    assert the_page_tells(resolve("jax"))
