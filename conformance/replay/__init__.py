"""Counterexamples in the JSON of a report, and a run on the cases of such a report."""
