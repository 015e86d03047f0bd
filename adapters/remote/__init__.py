"""The judge's side of a target in a worker process; adapters/worker is the other side."""
