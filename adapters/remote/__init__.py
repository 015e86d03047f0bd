"""What stands for a target where it is judged, while the target itself lives in a worker (adapters/worker)."""
