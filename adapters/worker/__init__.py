"""
Targets in processes of their own: a small worker that holds the target, and what stands for it where it is judged.

PROTOCOL.md says what the two say to each other; a target in another language can speak it.
"""
