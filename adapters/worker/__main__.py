"""
The worker as a script, run by its path: requests on standard input, replies on standard output.

It finds normspec where this file lies, installed or not, so that the interpreter needs NumPy and the framework alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys


def _make_importable() -> None:
    """Make this very normspec importable, and what lies beside this file not."""
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = importlib.util.spec_from_file_location(
        "normspec", os.path.join(root, "__init__.py"), submodule_search_locations=[root]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["normspec"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    _make_importable()
    importlib.import_module("normspec.adapters.worker.server").main()
