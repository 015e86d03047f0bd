"""Patterns: the plainest true description of what is wrong, for a mistake that no fault of the library makes."""
