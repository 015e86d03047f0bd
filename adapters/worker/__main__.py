"""
The worker as a script, run by its path: requests on standard input, replies on standard output.

It imports the normspec that this file belongs to, installed or not. The interpreter needs only NumPy and the framework.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys


def _make_importable() -> None:
    """Make this normspec importable, and the modules beside this file not importable."""
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
