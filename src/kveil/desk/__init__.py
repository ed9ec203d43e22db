"""Where questions about rows are answered: with noise, for a share of a budget, and never otherwise."""
