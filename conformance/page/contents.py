"""The contents of the page, taken from the JSON of reports; the data of its tables are kept in few bytes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import attrs

from ...reference.formats import ALL_DTYPES
from ...spec import requirements
from ...spec.operators import OPERATORS
from ..reporting.explained import place_of
from ..reporting.numbers import ratio_text
from ..requests.command import command
from .scripts import script_for
from .smallest import smallest_case

#: The verdicts by gravity, as the page counts and filters them.
VERDICTS = ("fail", "error", "advice", "deviates", "not-exercised", "unsupported", "pass")

#: The beginning of the ids of requirements on every operator.
_COMMON_PREFIX = "CM-"


@attrs.frozen
class Document:
    """A report in the form of its `to_json`, which is not checked again, and its name."""

    name: str
    content: Mapping[str, Any]


@attrs.define
class _TextTable:
    """A list of texts, each kept once, so that its index can stand for it."""

    indices: dict[Hashable, int] = attrs.field(factory=dict)

    def index(self, text: Hashable) -> int:
        """The index of a text."""
        return self.indices.setdefault(text, len(self.indices))


def contents(documents: Sequence[Document]) -> dict[str, Any]:
    """The whole contents of the page: texts that are written into it, and under ``data`` the data of its tables."""
    words, targets, rows, causes = _TextTable(), [], [], []
    for number, document in enumerate(documents):
        for told in document.content["targets"]:
            name = told["name"]
            again = any(one["label"] == name or one["name"] == name for one in targets)
            label = f"{name} ({document.name})" if again else name
            targets.append(_target(told, label, number, document))
            causes += _causes(document, name, label)
            of_it = [one for one in document.content["results"] if one["target"] == name]
            rows += [_row(one, len(targets) - 1, words, document) for one in of_it]
    ids = sorted({row[2] for row in rows})
    return {
        "runs": [_run(document) for document in documents],
        "targets": targets,
        "causes": causes,
        "verdicts": VERDICTS,
        "data": {
            "targets": [{key: one[key] for key in ("label", "versions")} for one in targets],
            "words": list(words.indices),
            "requirements": _requirements(ids, documents),
            "verdicts": VERDICTS,
            "dtypes": _in_order({row[3] for row in rows}, ALL_DTYPES),
            "operators": _in_order({row[1] for row in rows}, OPERATORS),
            "rows": rows,
        },
    }


def _in_order(found: Iterable[str], order: Iterable[str]) -> list[str]:
    """Names in this order; names that it lacks come last."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(found, key=lambda name: (places.get(name, len(places)), name))


def _run(document: Document) -> dict[str, Any]:
    content = document.content
    asked = [f"{key} {', '.join(content[key])}" for key in ("only", "binding", "require") if content[key]]
    versions = [f"{name} {number}" for name, number in content["versions"].items()]
    return {
        "name": document.name,
        "how": ", ".join([f"profile {content['profile']}", f"seed {content['seed']}", *asked]),
        "where": ", ".join([*versions, content["platform"]]),
        "notes": content["notes"],
    }


def _target(told: Mapping[str, Any], label: str, number: int, document: Document) -> dict[str, Any]:
    subjects = [one for one in document.content["subjects"] if one["target"] == told["name"]]
    versions = dict.fromkeys(f"{one.get('framework', '')} {one.get('version', '')}".strip() for one in subjects)
    kept = [one["kept"] for one in document.content["results"] if one["target"] == told["name"] and one["kept"]]
    return {
        "name": told["name"],
        "label": label,
        "run": number,
        "versions": ", ".join(versions),
        "verdict": told["verdict"],
        "conforms": told["conforms"],
        "counts": told["counts"],
        "kept": min(kept, default=""),
        "under": [(one["binding"], one["passes_under"]) for one in subjects if one.get("passes_under")],
    }


def _causes(document: Document, name: str, label: str) -> list[dict[str, Any]]:
    """The causes of a target's violations, each with the clearest of these violations."""
    found = []
    for cause in document.content["causes"]:
        if cause["target"] == name:
            shown = _clearest(cause, document.content["results"])
            found.append(
                {
                    **cause,
                    "label": label,
                    "smallest": smallest_case(shown["counterexample"]) if shown else [],
                    "reproducer": _script_of(cause, document.content),
                    "again": repeat_command(shown, document) if shown else "",
                    "anchor": anchor(label, shown) if shown else "",
                }
            )
    return found


def _script_of(cause: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """The script that shows a cause; for a cause without a name, the script of a requirement that it explains."""
    about = {"target": cause["target"], "op": cause["op"], "fault": (*cause["faults"], "")[0]}
    if about["fault"]:
        return script_for(content, **about)
    found = (script_for(content, **about, requirement=name) for name in cause["explains"])
    return next(filter(None, found), "")


def _clearest(cause: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The violation that shows a cause best: of its own requirement, in the dtype that tells most."""
    explained = [
        one
        for one in results
        if one["target"] == cause["target"]
        and one["op"] == cause["op"]
        and one["requirement"] in cause["explains"]
        and one["dtype"] in cause["dtypes"]
        and one["counterexample"] is not None
    ]
    telling = ("float32", "float64", "float16", "bfloat16")
    return min(
        explained,
        key=lambda one: (cause["explains"].index(one["requirement"]), telling.index(one["dtype"])),
        default=None,
    )


def anchor(label: str, result: Mapping[str, Any]) -> str:
    """The anchor of a result on the page: `#torch/LN-F3/float32`; with the operator if several have the requirement."""
    operator = [result["op"]] if result["requirement"].startswith(_COMMON_PREFIX) else []
    words = [label, *operator, result["requirement"], result["dtype"]]
    return "#" + "/".join(quote(word, safe="!~*'()", errors="replace") for word in words)


def repeat_command(result: Mapping[str, Any], document: Document) -> str:
    """The command that judges this requirement again on the same cases."""
    return command(
        "check", result["target"], op=result["op"], dtype=result["dtype"], only=result["requirement"],
        profile=document.content["profile"], seed=str(document.content["seed"]), device=result["device"],
    )  # fmt: skip


def _requirements(identifiers: Iterable[str], documents: Sequence[Document]) -> dict[str, list[str]]:
    """For each id its title, its sentence, and where it is written."""
    pages = requirements()
    sentences = {one["requirement"]: one["sentence"] for document in documents for one in document.content["results"]}
    found = {}
    for identifier in _in_order(identifiers, pages):
        page = pages.get(identifier)
        place = place_of(page) if page is not None else ""
        found[identifier] = [page.title if page is not None else "", sentences[identifier], place]
    return found


def _row(result: Mapping[str, Any], target: int, words: _TextTable, document: Document) -> list[Any]:
    """A result as a row: common fields by their index, and the others by name."""
    kinds = [part for kind, ratio in result["kinds"].items() for part in (words.index(kind), _shortened(ratio))]
    more = {
        "reason": result["reason"],
        "declined": dict(result["declined"]),
        "same": result["same_case_as"],
        "cause": _cause_of(result, document),
        "known": [[one["reason"], one["scope"], one["links"], one["shown"]] for one in result["known"]],
        "upstream": result.get("upstream"),
        "kept": result["kept"],
        "trace": result["traceback"],
        "device": result["device"] if result["device"] != "cpu" else "",
    }
    found = result["counterexample"]
    if found is not None:
        more |= {"smallest": smallest_case(found), "again": repeat_command(result, document)}
        place = ("target", "op", "binding", "dtype", "requirement")
        more["code"] = script_for(document.content, **{name: result[name] for name in place})
    reason = more.pop("reason")
    some = {key: one for key, one in more.items() if one}
    return [
        target, result["op"], result["requirement"], result["dtype"], words.index(result["binding"]),
        VERDICTS.index(result["verdict"]), int(result["level"] == "SHOULD"), _shortened(result["ratio"]),
        result["cases"], words.index(reason) if reason else -1, kinds, some,
    ]  # fmt: skip


def _cause_of(result: Mapping[str, Any], document: Document) -> str:
    """The sentence of the cause that explains a violation, with its name if it has one."""
    name = result["diagnosis"]
    for cause in document.content["causes"] if name else []:
        if name in cause["faults"]:
            return f"{cause['sentence']} ({name})"
    return name or ""


def _shortened(ratio: Any) -> Any:
    """
    A ratio in the digits of the terminal's tables, which are on the right side of 1, or in three below 0.01.

    The texts "inf" and "nan", and None, stay.
    """
    if isinstance(ratio, float):
        short = float(ratio_text(ratio) if ratio >= 0.01 else f"{ratio:.3g}")
        return int(short) if short == int(short) and abs(short) < 1e9 else short
    return ratio
