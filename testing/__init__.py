"""
normspec in a user's own tests: assertions on data, a pytest plugin, strategies for Hypothesis.

Every name is imported when it is first used (PEP 562): pytest loads the plugin of this package in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asserting import OutsideEnvelope as OutsideEnvelope
    from .assertions import assert_batch_norm as assert_batch_norm
    from .assertions import assert_batch_norm_grads as assert_batch_norm_grads
    from .assertions import assert_group_norm as assert_group_norm
    from .assertions import assert_group_norm_grads as assert_group_norm_grads
    from .assertions import assert_instance_norm as assert_instance_norm
    from .assertions import assert_instance_norm_grads as assert_instance_norm_grads
    from .assertions import assert_layer_norm as assert_layer_norm
    from .assertions import assert_layer_norm_grads as assert_layer_norm_grads
    from .assertions import assert_rms_norm as assert_rms_norm
    from .assertions import assert_rms_norm_grads as assert_rms_norm_grads
    from .envelopes import envelope_batch_norm as envelope_batch_norm
    from .envelopes import envelope_batch_norm_grads as envelope_batch_norm_grads
    from .envelopes import envelope_group_norm as envelope_group_norm
    from .envelopes import envelope_group_norm_grads as envelope_group_norm_grads
    from .envelopes import envelope_instance_norm as envelope_instance_norm
    from .envelopes import envelope_instance_norm_grads as envelope_instance_norm_grads
    from .envelopes import envelope_layer_norm as envelope_layer_norm
    from .envelopes import envelope_layer_norm_grads as envelope_layer_norm_grads
    from .envelopes import envelope_rms_norm as envelope_rms_norm
    from .envelopes import envelope_rms_norm_grads as envelope_rms_norm_grads
    from .judgement import Envelope as Envelope
    from .judgement import Judgement as Judgement
    from .judgement import Worst as Worst

__all__ = [
    "Envelope",
    "Judgement",
    "OutsideEnvelope",
    "Worst",
    "assert_batch_norm",
    "assert_batch_norm_grads",
    "assert_group_norm",
    "assert_group_norm_grads",
    "assert_instance_norm",
    "assert_instance_norm_grads",
    "assert_layer_norm",
    "assert_layer_norm_grads",
    "assert_rms_norm",
    "assert_rms_norm_grads",
    "envelope_batch_norm",
    "envelope_batch_norm_grads",
    "envelope_group_norm",
    "envelope_group_norm_grads",
    "envelope_instance_norm",
    "envelope_instance_norm_grads",
    "envelope_layer_norm",
    "envelope_layer_norm_grads",
    "envelope_rms_norm",
    "envelope_rms_norm_grads",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    kind = name.partition("_")[0]
    file = {"assert": "assertions", "envelope": "envelopes", "OutsideEnvelope": "asserting"}.get(kind, "judgement")
    found = getattr(import_module(f".{file}", __name__), name)
    globals()[name] = found  # the next use finds it without this function
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
