"""How each framework holds tensors, differentiates and calls each operator. Frameworks are imported only when needed."""
