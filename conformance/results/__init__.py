"""Results of a run: its outcome, the report, and the changes since another report."""
