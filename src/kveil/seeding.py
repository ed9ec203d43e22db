"""Seeding functions for any clusterer. They work on public data; by themselves they promise no privacy."""

from kveil.solve.hst import hst
from kveil.solve.metric_seeding import kmedian_plusplus
from kveil.solve.seeding import kmeans_plusplus, kvariates

__all__ = ["hst", "kmeans_plusplus", "kmedian_plusplus", "kvariates"]
