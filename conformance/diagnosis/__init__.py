"""Diagnosis: from the requirements that a target violates to the mistake that its author made."""
