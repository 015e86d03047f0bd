"""The page of one or several reports: HTML that needs no network and no other file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..results.report import Report
from .contents import Document, contents
from .jinja import ensure_jinja

_HERE = Path(__file__).parent


def page_of_reports(reports: Mapping[str, Report]) -> str:
    """The page of these reports, each with a name. Raises NoJinja."""
    return page_of([Document(name, json.loads(report.to_json())) for name, report in reports.items()])


def page_of(documents: Sequence[Document]) -> str:
    """
    The page, as the text of an HTML file.

    Jinja2 escapes what targets said, and the script sets it as text. The browser is told to run no script but the
    page's own, and to load nothing. Raises NoJinja.
    """
    ensure_jinja()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style, script = (_HERE / "page.css").read_text("utf-8"), (_HERE / "page.js").read_text("utf-8")
    told = contents(documents)
    return environment.get_template("page.html.jinja").render(
        **{**told, "data": _packed(told["data"])},
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _packed(data: Any) -> str:
    """The tables' data, compressed: a report on three frameworks has twenty thousand results, which shrink tenfold."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode()


def _hash(text: str) -> str:
    """The name of a text in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
