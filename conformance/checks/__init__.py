"""Checks: one for each requirement and operator, registered by the requirement's id."""
