"""Seeding functions for any clusterer. They work on public data; by themselves they promise no privacy."""

from kveil.solve.densities import Dirac, ProductLaplace, UniformOver
from kveil.solve.divergences import ItakuraSaito, KullbackLeibler, Mahalanobis, SquaredEuclidean, TotalJensen
from kveil.solve.families import Gamma, Gaussian, Multinomial, Poisson
from kveil.solve.hst import hst
from kveil.solve.instances import forgy, kmeans_parallel, kmeans_plusplus, skmeans_plusplus
from kveil.solve.metric_seeding import kmedian_plusplus
from kveil.solve.nodes import dkmeans_plusplus
from kveil.solve.online import OnlineSeeder
from kveil.solve.probes import Identity, NearestOf
from kveil.solve.seeding import D2, Seeding, kvariates

__all__ = [
    "D2", "Dirac", "Gamma", "Gaussian", "Identity", "ItakuraSaito", "KullbackLeibler", "Mahalanobis", "Multinomial", "NearestOf",
    "OnlineSeeder", "Poisson", "ProductLaplace", "Seeding", "SquaredEuclidean", "TotalJensen", "UniformOver", "dkmeans_plusplus",
    "forgy", "hst", "kmeans_parallel", "kmeans_plusplus", "kmedian_plusplus", "kvariates", "skmeans_plusplus",
]  # fmt: skip
