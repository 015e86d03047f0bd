"""Explanations of a requirement or a mistake: its text, its cost, and its repair."""
