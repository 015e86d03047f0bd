"""
normspec in a user's own tests: assertions on data, a pytest plugin, strategies for Hypothesis.

assert_layer_norm and its like take the results first, then what the function was given, then its settings (eps, axes
and so on) by name. These keywords say how the function computes, each in the words of spec/conventions.md:

    storage="H0"                    what 16-bit data is rounded to: "H0" only results, "H1" the normalised value too,
                                    "H2" the saved statistics too, "native" every operation
    variance_algorithm="centred"    "shifted" or "one-pass" where the variance is a mean of squares less a squared mean
    affine="folded"                 "centred" where (x - mean) r is formed before gamma and beta are applied
    cast="last"                     of rms_norm: "before-gain" where it is rounded to 16 bits before the gain too
    running_variance="biased"       of batch_norm: "bessel" where the running variance is of variances by n - 1
    subnormals="kept"               "flushed" where subnormal numbers become zero

and these, what is looked at:

    check_dtype=True                whether a result with another dtype than its input's fails; if False, it is rounded
    sample=None                     an int: how many groups to look at; None for all
    seed=0                          an int: which groups those are

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
