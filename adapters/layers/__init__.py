"""Users' layers of any framework: find their parameters and settings, and lend or set them."""
