"""What the layers do: the claims of the literature, measured on any target. `normspec study` runs them."""
