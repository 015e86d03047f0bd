"""
A report as JUnit's XML, which CI systems read: a suite for each target, a test case for each result.

The elements and attributes are those that Jenkins reads (junit-10.xsd of its xunit plugin) and that pytest writes. No
library writes them for us: the existing ones build the same tree of seven elements, and leave the characters that XML
cannot hold to their callers, as the standard library does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as tree

from ..judging.verdicts import Result, Verdict
from ..results.outcome import Outcome
from .conclusion import target_conclusion
from .in_short import in_one_line
from .located import definition, violation_in_text

#: Characters that no XML 1.0 document may hold, even escaped: control characters, surrogate halves, and two others.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(report: Outcome) -> str:
    """The document, ending in a line break."""
    root = tree.Element("testsuites", name="normspec", time=f"{report.seconds:.3f}")
    for name in report.targets:
        root.append(_suite(report.target(name), name, report.all_versions))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    tree.indent(root)
    return f"{_HEAD}{tree.tostring(root, encoding='unicode', xml_declaration=False)}\n"


_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


def _suite(report: Outcome, name: str, versions: Mapping[str, str]) -> tree.Element:
    """The suite of a report on one target, with the versions of the whole report."""
    suite = tree.Element("testsuite", name=_xml(name))
    place = definition(report, name)
    if place is not None:
        suite.set("file", _xml(place[0]))
    told = {"profile": report.profile, "seed": str(report.seed), **versions}
    properties = tree.SubElement(suite, "properties")
    for key, value in told.items():
        tree.SubElement(properties, "property", name=key, value=_xml(value))
    for result in report.results:
        suite.append(_case(report, result))
    for one in report.unmet():
        case = tree.SubElement(suite, "testcase", classname=_xml(name), name=_xml(f"{one.requirement} is expected"))
        _add(case, "failure", one.reason, type="expected", message=one.wrong)
    if report.exit_status not in (0, 1) and not report.errors():
        # Nothing was judged, or not everything: a suite without this case would look like one that conforms.
        case = tree.SubElement(suite, "testcase", classname=_xml(name), name="everything was judged")
        _add(case, "error", "\n".join(report.defects), type="partial", message=target_conclusion(report)[0])
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    suite.set("tests", str(len(suite.findall("testcase"))))
    for count, kind in kinds.items():
        suite.set(count, str(len(suite.findall(f"testcase/{kind}"))))
    return suite


def _case(report: Outcome, result: Result) -> tree.Element:
    """The test case of one result. The pytest plugin gives its test the same name."""
    place = dict.fromkeys((result.target, result.op, result.binding))
    case = tree.Element(
        "testcase", classname=_xml("::".join(place)), name=_xml(f"{result.requirement}[{result.dtype}]")
    )
    verdict, reason = result.verdict, result.reason
    if verdict is Verdict.FAIL:
        _add(case, "failure", violation_in_text(report, result), type=result.requirement, message=in_one_line(result))
    elif verdict is Verdict.ERROR:
        _add(case, "error", result.traceback or reason, type=result.requirement, message=reason)
    elif verdict in (Verdict.UNSUPPORTED, Verdict.NOT_EXERCISED):
        _add(case, "skipped", None, type=verdict.value, message=reason or verdict.value)
    elif verdict is Verdict.ADVICE:
        _add(case, "system-out", f"advice: {in_one_line(result)}\n{violation_in_text(report, result)}")
    elif verdict is Verdict.DEVIATES:
        _add(case, "system-out", f"deviates: {reason}")
    return case


def _add(case: tree.Element, name: str, text: str | None, **attributes: str) -> None:
    """Add an element to a test case."""
    child = tree.SubElement(case, name, {key: _xml(words) for key, words in attributes.items()})
    child.text = None if text is None else _xml(text)


def _xml(words: str) -> str:
    """The words, with characters that XML cannot hold written as in Python: `\\x00`."""
    return _NOT_XML.sub(lambda found: ascii(found[0])[1:-1], words)
