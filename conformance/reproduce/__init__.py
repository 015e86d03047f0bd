"""Scripts that show a violation without normspec: NumPy, the target's framework and the target's file are enough."""
