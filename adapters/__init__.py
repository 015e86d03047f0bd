"""How each framework holds tensors, differentiates and calls each operator. A framework is imported only on demand."""
