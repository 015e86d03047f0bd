"""Cases: named regimes, witness groups, and how they become inputs of an operator."""
