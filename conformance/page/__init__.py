"""The page: one run or several as one HTML file that needs nothing else."""
