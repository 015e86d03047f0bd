"""Expected failures: what a project knows to be violated, with the reason, held to strictly."""
