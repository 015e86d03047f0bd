"""normspec says exactly what normalisation layers compute, and checks any implementation against it.

    import normspec
    report = normspec.check("my_layers.py:layer_norm", op="layer_norm", framework="torch")
    assert report.conforms

Every name is imported when it is first used (PEP 562), so that a process that needs one room loads no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.known import KnownViolation as KnownViolation
    from .conformance.api import check as check
    from .conformance.compare.comparison import Comparison as Comparison
    from .conformance.compare.run import compare as compare
    from .conformance.identify.identification import Identification as Identification
    from .conformance.identify.identifying import identify as identify
    from .conformance.judging.verdicts import Result as Result
    from .conformance.judging.verdicts import Verdict as Verdict
    from .conformance.replay.forms import DamagedReport as DamagedReport
    from .conformance.replay.loading import load_report as load_report
    from .conformance.results.report import NotConforming as NotConforming
    from .conformance.results.report import Report as Report
    from .conformance.results.report import report_schema as report_schema
    from .spec.errors import NormspecError as NormspecError
    from .spec.errors import Unsupported as Unsupported
    from .testing.conforming import conforms as conforms

    __version__: str

__all__ = [
    "Comparison",
    "DamagedReport",
    "Identification",
    "KnownViolation",
    "NormspecError",
    "NotConforming",
    "Report",
    "Result",
    "Unsupported",
    "Verdict",
    "__version__",
    "check",
    "compare",
    "conforms",
    "identify",
    "load_report",
    "report_schema",
]

#: The module of each public name.
_ROOMS = {
    "check": "conformance.api",
    "compare": "conformance.compare.run",
    "Comparison": "conformance.compare.comparison",
    "identify": "conformance.identify.identifying",
    "Identification": "conformance.identify.identification",
    "KnownViolation": "adapters.known",
    "DamagedReport": "conformance.replay.forms",
    "load_report": "conformance.replay.loading",
    "NormspecError": "spec.errors",
    "NotConforming": "conformance.results.report",
    "report_schema": "conformance.results.report",
    "Report": "conformance.results.report",
    "Result": "conformance.judging.verdicts",
    "Unsupported": "spec.errors",
    "Verdict": "conformance.judging.verdicts",
    "conforms": "testing.conforming",
}

#: The functions whose errors are about options of the command too.
_SHARED_WITH_THE_COMMAND = ("check", "compare", "identify")

#: Public modules.
_MODULES = ("strategies", "testing")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("normspec")
    if name in _ROOMS or name in _MODULES:
        from importlib import import_module

        if name in _MODULES:
            return import_module(f".{name}", __name__)
        found = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
        if name in _SHARED_WITH_THE_COMMAND:
            found = globals()[name] = import_module(".conformance.in_python", __name__).says_python(found)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
