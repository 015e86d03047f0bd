"""The errors of a page, one class each; every message names the page and the line."""

from __future__ import annotations


class MalformedPage(Exception):
    """A normative page departs from the format that notation.md fixes."""

    def __init__(self, page: str, line: int, problem: str) -> None:
        super().__init__(f"{page}.md, line {line}: {problem}")
        #: The page's name, without its ending, and the line, counted from 1.
        self.page = page
        self.line = line


class MalformedHeading(MalformedPage):
    """A third-level heading is not of the form ``### LN-F3 (MUST): title``."""


class DuplicateRequirement(MalformedPage):
    """Two requirements have the same id."""


class ForeignRequirement(MalformedPage):
    """A requirement is on a page to which its id does not belong."""


class MissingAnchor(MalformedPage):
    """A requirement or an erratum cannot be linked by its id."""


class MissingSentence(MalformedPage):
    """A requirement does not begin with its sentence."""


class NotOneSentence(MalformedPage):
    """A requirement's first paragraph is not exactly one sentence."""


class UnclosedFormula(MalformedPage):
    """A formula block is opened and not closed."""


class MissingReason(MalformedPage):
    """A requirement gives no reason, or an empty one."""


class MalformedSources(MalformedPage):
    """The sources are not a comma-separated list of links in angle brackets."""


class MalformedErrata(MalformedPage):
    """The errata are not a comma-separated list of links to errata, or an erratum is not in its form."""


class MisplacedText(MalformedPage):
    """There is text inside a requirement where the format allows none."""


class UnknownRequirement(LookupError):
    """No page has a requirement with this id."""

    def __init__(self, id: str) -> None:
        super().__init__(f"no requirement has the id {id!r}")
        self.id = id
