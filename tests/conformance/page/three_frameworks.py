"""
Write the report whose page `test_page.py` opens: one run over three frameworks that no single test environment has.

python tests/conformance/page/three_frameworks.py   with torch, jax and tensorflow installed: about a minute
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

from normspec.__main__ import main

STORED = Path(__file__).with_suffix(".json.gz")

COMMAND = (
    *("check", "torch", "jax", "tensorflow", "--profile", "quick", "--op", "layer_norm", "--dtype", "float32"),
    *("--seed", "0", "--no-cache"),
)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        status = main([*COMMAND, "--json", str(report)])
        if status > 1:  # 1: something does not conform, which a page shows as well
            raise SystemExit(status)
        STORED.write_bytes(gzip.compress(report.read_bytes(), mtime=0))
