"""Layers of a user's own, of whatever framework: how their parameters and settings are found, and lent or set."""
