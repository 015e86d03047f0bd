"""The card of one implementation: which normalisation it is, according to the probes of `normspec compare`."""
