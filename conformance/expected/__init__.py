"""Expected failures: violations that a project knows, with the reason, and strictly compared with what happens."""
