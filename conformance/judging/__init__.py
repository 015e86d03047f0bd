"""What a target returned, against what it must return: one subject, its calls, the exact values, and what was found."""
