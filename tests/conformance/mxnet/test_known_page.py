"""The table of known deviations agrees with the bindings in the worker."""

from __future__ import annotations

import os

from normspec.adapters.remote.launching import opened_target, start_host

from ..known_page import the_page_tells


def test_the_page_tells_what_is_known() -> None:
    """The rows of the target on the page of conventions are those that its bindings make."""
    target = opened_target(start_host("mxnet", python=os.environ["NORMSPEC_MXNET_PYTHON"]))
    try:
        assert the_page_tells(target)
    finally:
        target.close()
