"""Reports: the table to read at the end of a run, and the JSON that another program reads."""
