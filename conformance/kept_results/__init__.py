"""Kept results: targets that did not change are not run again, and an interrupted run can be continued."""
