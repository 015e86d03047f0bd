"""The index of the specification: makes the text of spec/README.md from the pages.

`python -m normspec.spec.contents > spec/README.md` rewrites it; a test fails while it is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from .errata import errata
from .reader import Requirement, pages, prefixes, requirements, withdrawn

#: The contents of each page, in a few words.
ABOUT = {
    "notation": "words, levels, ids, how formulas are written, verdicts, formats",
    "accuracy": "the error envelope: every formula and the reason for each factor",
    "conventions": "what a target may do otherwise, signatures of derivatives, known deviations of frameworks",
    "common": "requirements on every operator",
    "layer_norm": "over trailing axes",
    "batch_norm": "over samples and positions of a channel, with running statistics",
    "rms_norm": "over trailing axes, with no mean taken out",
    "group_norm": "over consecutive channels of a sample",
    "instance_norm": "over one channel of a sample",
    "residual": "x plus a branch",
    "pre_norm": "x plus a sublayer of its norm",
    "post_norm": "the norm of x plus a sublayer",
    "highway": "a gate between x and a transform of it",
    "mhc": "the multi-scale highway connection: x plus branches, weighted by a softmax",
    "errata": "what is printed and wrong, with counter-examples",
}

HEAD = """# The specification

What each operator computes, and what is required of an implementation. A requirement has an id, such as
[LN-F3](layer_norm.md#LN-F3), that is never reused: cite *normspec, edition {edition}, LN-F3*. `#LN-F3` behind the
address of its page leads to it, whatever becomes of its title. `normspec explain LN-F3` prints it, with the known
mistakes that it excludes; `normspec explain "std + eps"` finds what speaks of that.

This page is made from the others: `python -m normspec.spec.contents`.
"""


def subjects() -> Mapping[str, Mapping[str, tuple[Requirement, ...]]]:
    """
    Return all requirements by subject, the heading of their section, and within it by title.

    Sections come in the order of the pages; `The formula` and `The formula in training` are one.
    """
    found: dict[str, dict[str, list[Requirement]]] = {}
    for one in requirements().values():
        subject = one.subject.removesuffix(" in training")
        found.setdefault(subject, {}).setdefault(one.title, []).append(one)
    return {subject: {title: tuple(ones) for title, ones in titles.items()} for subject, titles in found.items()}


def contents() -> str:
    """Return the text of spec/README.md."""
    (edition,) = set(re.findall(r"^\*Edition (\d+)\.", "\n".join(pages().values()), re.M))
    prefix, lines = prefixes(), [HEAD.format(edition=edition)]
    lines += ["## Pages", "", "| page | ids | what it has |", "|---|---|---|"]
    for page, about in ABOUT.items():
        ids = f"{prefix[page]}-" if prefix[page] else "ERR-" if page == "errata" else ""
        lines.append(f"| [{page}]({page}.md) | {ids} | {about} |")
    lines += ["", "## Requirements by subject", "", "A requirement in *italics* is a SHOULD: advice.", ""]
    table = subjects()
    lines.append(" · ".join(f"[{subject}](#{_anchor(subject)})" for subject in table))
    for subject, titles in table.items():
        lines += ["", f"### {subject}", "", "| | |", "|---|---|"]
        lines += [f"| {title} | {', '.join(map(_link, ones))} |" for title, ones in titles.items()]
    lines += ["", "## Errata", "", "| | printed | against |", "|---|---|---|"]
    for one in errata().values():
        cited = ", ".join(_link(requirements()[id]) for id in one.requirements)
        lines.append(f"| [{one.id}](errata.md#{one.id}) | {one.title} | {cited} |")
    lines += ["", "## Withdrawn", "", "| | |", "|---|---|"]
    lines += [
        f"| {id} | {', '.join(_link(requirements()[one]) for one in successors)} |"
        for id, successors in withdrawn().items()
    ]
    return "\n".join(lines) + "\n"


def _link(one: Requirement) -> str:
    link = f"[{one.id}]({one.page}.md#{one.id})"
    return link if one.level.value == "MUST" else f"*{link}*"


def _anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    sys.stdout.write(contents())
