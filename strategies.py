"""Hypothesis strategies under their public name: `normspec.strategies.cases("layer_norm")`."""

from .testing.strategies import Drawn, NoHypothesis, cases

__all__ = ["Drawn", "NoHypothesis", "cases"]
