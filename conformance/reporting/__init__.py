"""Reports: the tables at the end of a run, and the JSON for other programs."""
