"""The composed operators on NumPy arrays, soundly: the bases that variants and faults override, and the variants."""
