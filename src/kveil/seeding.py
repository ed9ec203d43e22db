"""Seeding functions for any clusterer. They work on public data; by themselves they promise no privacy."""

from kveil.solve.seeding import kmeans_plusplus, kvariates

__all__ = ["kmeans_plusplus", "kvariates"]
