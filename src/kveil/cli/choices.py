"""Words that options take."""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    add_remove = "add-remove"
    replace_one = "replace-one"


class Format(StrEnum):
    parquet = "parquet"
    csv = "csv"


class Scaling(StrEnum):
    bounds = "bounds"
    private = "private"


class FailOn(StrEnum):
    noise = "noise"


class Objective(StrEnum):
    k_means = "k-means"
    k_median = "k-median"


class Method(StrEnum):
    auto = "auto"
    tree = "tree"
    lloyd = "lloyd"
    grid = "grid"
    sample_aggregate = "sample-aggregate"
    mean = "mean"
    spherical = "spherical"
    candidates = "candidates"
    weiszfeld = "weiszfeld"
    counts = "counts"
    local_search = "local-search"


METHODS = ", ".join(Method)


class Metric(StrEnum):
    euclidean = "euclidean"
    graph = "graph"
    cosine = "cosine"
