"""Results that are kept: what did not change is not run again, and a run that was interrupted goes on."""
