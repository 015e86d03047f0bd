"""The parts of benchmarks/assertion.py, one file per table."""
