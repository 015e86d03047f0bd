"""Truths that are kept: each is computed once for a case, and found again in memory and on disk."""
