"""What the layers do: claims of the literature, measured on any target. `normspec study` runs them."""
