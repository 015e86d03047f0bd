"""Who judges the units of a request: this process, several, or the machines of a cluster; and the one report of it."""
