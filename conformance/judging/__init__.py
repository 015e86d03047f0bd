"""Judging one subject: its calls, the exact values and envelopes, findings and verdicts."""
