"""The report: the outcome of a run as text, as JSON, and as an exception."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import attrs

from ..reporting.conclusion import conclusion
from ..reporting.in_short import in_short
from ..reporting.json_values import plain, result_in_json, target_in_json
from ..reporting.junit import as_junit
from ..reporting.markdown import as_markdown
from ..reporting.render import as_text
from .changes import changes
from .outcome import Outcome

#: Version of the JSON. It is raised by one when a reader of the old form would misread the new one.
SCHEMA = 2


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the output of `to_json`; `$id` contains its version."""
    return json.loads((Path(__file__).parent / "report.schema.json").read_text(encoding="utf-8"))


#: pytest shows at most this many characters of a value, and leaves out the middle of a longer one.
_REPR = 230


class NotConforming(AssertionError):
    """The targets do not conform, or the check is incomplete. The message says in short what failed."""


@attrs.frozen(repr=False)
class Report(Outcome):
    """All results of one run, of one target or of several."""

    def __str__(self) -> str:
        """The report as a terminal shows it, without colour, in 80 columns or as many as COLUMNS says."""
        # Use symbols that standard output can show, because a text usually goes there.
        return as_text(self, getattr(sys.stdout, "encoding", None) or "utf-8")

    def __repr__(self) -> str:
        """The conclusion in one line."""
        words = f"<Report: {conclusion(self)[0]}>"
        return words if len(words) <= _REPR else f"{words[: _REPR - 4]}...>"

    def raise_if_failed(self) -> None:
        """
        Do nothing if the report conforms, which is exit status 0.

        Raises NotConforming, an AssertionError that says in short what failed.
        """
        __tracebackhide__ = True  # pytest then shows the line of the test and not this one
        if not self.conforms:
            raise NotConforming(in_short(self))

    def to_junit(self) -> str:
        """The report as JUnit's XML: a suite for each target, a test case for each result."""
        return as_junit(self)

    def to_markdown(self, against: Outcome | None = None) -> str:
        """
        The report in GitHub's Markdown, for example for a comment: the verdict, causes, and other violations.

        With ``against``, an earlier report such as `load_report` returns, it also lists the changes since then.
        """
        return as_markdown(self, None if against is None else changes(against, self))

    def to_json(self) -> str:
        """The whole report as strict JSON: counterexamples in hexadecimal, NaN and infinities as strings."""
        document = {
            "schema": SCHEMA,
            "versions": self.all_versions,
            "platform": self.platform,
            "profile": self.profile,
            "seed": self.seed,
            "seconds": plain(self.seconds),
            "only": list(self.only),
            "binding": list(self.binding),
            "require": list(self.require),
            "replayed": self.replayed,
            "not_replayed": [attrs.asdict(one) for one in self.not_replayed],
            "partial": self.partial,
            "conforms": self.conforms,
            "exit_status": self.exit_status,
            "counts": self.counts(),
            "targets": [target_in_json(name, self.target(name)) for name in self.targets],
            "defects": list(self.defects),
            "notes": list(self.notes),
            "share": plain(self.share),
            "taken": [plain(attrs.asdict(one)) for one in self.taken],
            "subjects": [plain(s) for s in self.subjects],
            "expected": [attrs.asdict(one) for one in self.expected],
            "causes": [attrs.asdict(one) for one in self.causes],
            "scripts": [attrs.asdict(one) for one in self.reproducers],
            "results": [result_in_json(r) for r in self.results],
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"
