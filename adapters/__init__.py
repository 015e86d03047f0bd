"""How each framework holds tensors, differentiates and spells each operator; none is imported before it is needed."""
