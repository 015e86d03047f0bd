"""Campaigns: a check on many seeds that can be stopped and gone on with, and what it established in the end."""
