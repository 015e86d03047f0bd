"""Kept truths: each is computed once for a case and found again, in memory or on disk."""
