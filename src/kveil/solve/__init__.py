"""Ordinary clustering of public or noisy data. This room has never seen a secret."""
