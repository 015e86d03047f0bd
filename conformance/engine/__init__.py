"""The engine: runs the checks of each subject on its cases, and derives the verdicts."""
