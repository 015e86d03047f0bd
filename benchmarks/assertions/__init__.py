"""The parts of benchmarks/assertion.py, a file a table."""
