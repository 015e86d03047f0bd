"""What came of a run: its outcome, the report, and what changed since another one."""
