"""Hypothesis strategies under the name that users write: `normspec.strategies.cases("layer_norm")`."""

from .testing.strategies import Drawn, NoHypothesis, cases

__all__ = ["Drawn", "NoHypothesis", "cases"]
