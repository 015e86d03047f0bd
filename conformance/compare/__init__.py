"""
The semantic table: what targets do where implementations differ, measured and not copied from documentation.

Every cell comes from calls of the target through a session: NumPy arrays go in, NumPy arrays come out. A probe answers
one question, independently of the others: when the variance is measured, eps has no influence; when accuracy is
measured, the divisor of the variance has none.
"""
