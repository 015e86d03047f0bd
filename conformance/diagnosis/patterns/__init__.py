"""Patterns: the plainest true description of a mistake that is not in the library of faults."""
