"""Reads and checks a user's request: targets, requirements, conventions, limits; and makes the plan of the run."""
