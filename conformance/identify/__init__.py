"""The card of one implementation: which normalisation it is, told by the probes that `normspec compare` makes."""
