"""How each verdict looks: a symbol that reads without colour, a colour, and plain ASCII where nothing else prints."""

from __future__ import annotations

import attrs

from ..judging.verdicts import Result, Verdict

#: From most to least severe: a cell for several results shows the first of these that occurs.
SEVERITY = (
    Verdict.FAIL,
    Verdict.ERROR,
    Verdict.ADVICE,
    Verdict.NOT_EXERCISED,
    Verdict.UNSUPPORTED,
    Verdict.DEVIATES,
    Verdict.PASS,
)

COLOURS = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    #: Advice is not a failure.
    Verdict.ADVICE: "yellow",
    Verdict.DEVIATES: "cyan",
    Verdict.UNSUPPORTED: "bright_black",
    Verdict.NOT_EXERCISED: "bright_black",
    Verdict.ERROR: "bold magenta",
}


@attrs.frozen
class Symbols:
    """The characters that a report is drawn with."""

    verdicts: dict[Verdict, str]
    ellipsis: str
    rule: str
    heading: str
    kills: str
    also: str
    nothing: str
    #: Before a row in which targets differ.
    differs: str


def _in_order(signs: str) -> dict[Verdict, str]:
    """One sign for each verdict: pass, fail, advice, deviates, unsupported, not-exercised, error."""
    return dict(zip(Verdict, signs, strict=True))


UNICODE = Symbols(
    verdicts=_in_order("✓✗△≈–·!"),
    ellipsis="…",
    rule="─",
    heading="═",
    kills="●",
    also="○",
    nothing="·",
    differs="≠",
)

ASCII = Symbols(
    verdicts=_in_order("+X^~-.!"),
    ellipsis="..",
    rule="-",
    heading="=",
    kills="#",
    also="o",
    nothing=".",
    differs="*",
)


def symbols_for(encoding: str) -> Symbols:
    """The symbols that a stream of this encoding can print."""
    try:
        "✓✗≈–·△…─═●○".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return UNICODE


def verdict_of(symbol: str) -> Verdict | None:
    """The verdict that one of these symbols stands for in a report; None for any other text."""
    drawn = (verdict for symbols in (UNICODE, ASCII) for verdict, one in symbols.verdicts.items() if one == symbol)
    return next(drawn, None)


def symbol_and_style(result: Result, symbols: Symbols) -> tuple[str, str]:
    """The symbol and the style of one result."""
    return symbols.verdicts[result.verdict], COLOURS[result.verdict]
