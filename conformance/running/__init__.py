"""Judging the units of a request in this process, in several, or on a cluster; and the report of all units."""
