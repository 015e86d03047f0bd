"""Counterexamples in the JSON of a report, and a run on what such a report holds."""
