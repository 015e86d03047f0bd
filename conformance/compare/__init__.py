"""
The semantic table: what targets do where implementations differ, measured and not copied from documentation.

Every cell comes from calls of the target through a session: NumPy arrays go in, NumPy arrays come out. A probe is
made so that it answers one question whatever the answers to the others are: eps does not show where the variance
is asked for, and the divisor of the variance does not show where accuracy is.
"""
