"""Fails unless the named tox environments ran and passed: RESULT.json ENVIRONMENT..."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def outcome(environment: dict[str, Any]) -> str:
    """Say "passed", or what kept the environment from it."""
    commands = environment.get("test", [])
    if not commands or environment.get("result", {}).get("skipped"):
        return "did not run"
    failed = any(command["retcode"] != 0 for command in commands) or not environment["result"]["success"]
    return "failed" if failed else "passed"


def printed(environment: dict[str, Any]) -> list[str]:
    """Give every line that the environment's commands printed."""
    return [line for command in environment.get("test", []) for line in command.get("output", "").splitlines()]


def said(environment: dict[str, Any]) -> str:
    """Give pytest's last line about its tests, where there is one."""
    found = [line for line in printed(environment) if " passed" in line or " failed" in line or " error" in line]
    return found[-1].strip("= ") if found else ""


def failed_tests(environment: dict[str, Any]) -> list[str]:
    """Give pytest's line about each test that failed."""
    return [line for line in printed(environment) if line.startswith(("FAILED ", "ERROR "))]


def main(result: str, *required: str) -> int:
    """Print each environment's outcome, pytest's summary and its failed tests; 1 unless all those required passed."""
    environments = json.loads(Path(result).read_text(encoding="utf-8"))["testenvs"]
    for name, environment in environments.items():
        if not name.startswith("."):
            print(f"{name:12}  {outcome(environment):12}  {said(environment)}".rstrip())
            for line in failed_tests(environment):
                print(f"    {line}")
    missing = [name for name in required if outcome(environments.get(name, {})) != "passed"]
    if missing:
        print(f"these have to run and pass: {', '.join(missing)}", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
