"""Campaigns: a check on many seeds that can be stopped and continued, and its summary."""
