"""
Targets in processes of their own: a small worker holds the target, and adapters/remote has its proxy at the judge.

PROTOCOL.md defines their messages; a target in another language can use the same protocol.
"""
