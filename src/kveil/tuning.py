"""Constants of methods, for those who want to turn them. All are public choices, fixed before the data is seen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

__all__ = [
    "Candidates",
    "Counts",
    "Grid",
    "KMedian",
    "Lae",
    "Lloyd",
    "LocalSearch",
    "Mean",
    "SampleAggregate",
    "Spherical",
    "Tree",
]


@dataclass(frozen=True)
class Lloyd:
    """bits: width of the fixed-point grid; default 16, or 20 where `expected_rows` says that 16 would be too coarse.
    reseed: move centres whose noisy count shows no rows beside the largest clusters (free: it looks at released values);
        False is the plain method of the literature.
    noise: "vector" draws one noise vector per sum, in whichever law is smaller; "coordinates" is the improved DPLloyd of
        Su et al. (2016), Laplace noise on every coordinate, up to sqrt(2) times as wide and pure only: for comparison.

    For starts that look at the rows, init="noisy-sample" and init="variates":
    start_share: their share of the budget.
    sample: how many noisy rows per cluster init="noisy-sample" draws, and clusters.
    seeds: how init="variates" hides its anchors: "bounded-share" has noise that shrinks as rows grow, "laplace" (sigma_2 of the
        k-variates++ paper) noise as wide as the domain over epsilon/k.
    cap: where "bounded-share" cuts squared distances, as a share of the domain's squared diameter; default 1/max(4, k). A
        smaller one means less noise, and seeds that are less spread.
    """

    bits: int | None = None
    reseed: bool = True
    noise: Literal["vector", "coordinates"] = "vector"
    start_share: float = 0.25
    sample: int = 20
    seeds: Literal["bounded-share", "laplace"] = "bounded-share"
    cap: float | None = None


@dataclass(frozen=True)
class Grid:
    """bits: width of the fixed-point grid that rows are read on.
    hybrid: half of the budget for the grid, half for one Lloyd step from its centres.
    """

    bits: int | None = None
    hybrid: bool = False


@dataclass(frozen=True)
class Mean:
    """bits: width of the fixed-point grid."""

    bits: int | None = None


@dataclass(frozen=True)
class SampleAggregate:
    """blocks: how many; default N^0.4, from `expected_rows` or a noisy number of rows.
    n_steps: Lloyd steps of every block.
    bits: width of the fixed-point grid.
    """

    blocks: int | None = None
    n_steps: int = 10
    bits: int | None = None


@dataclass(frozen=True)
class Tree:
    """bits: width of the fixed-point grid; default as fine as exact sums allow.
    steps: relative steps after the first centres (with delta=0 and many columns released values decide instead); default 1 for
        at most 3 columns, else as many, up to 8, as the noise allows: at least 2 while the tree sees all columns, and beyond 4,
        or fewer if their noise would be as long as the radius. Sparse rows of more than 1000 columns have no such steps.
    nonzeros: a public bound on the entries of a sparse row that are not 0. Rows with more keep the largest in magnitude (ties:
        the lowest column). A small bound makes pure noise (delta=0) much narrower; Gaussian noise does not need it. With at
        least 8 columns per entry, and more than 16, such rows stay sparse, and there are no relative steps.
    frame: the axes of the tree where there are more than 16 columns (pure: 12): "random" ones, or "pca": those along which rows
        vary most, for 15 % of the budget; dense rows, delta > 0 and at most 1000 columns.
    trust_public: use the public sample of `fit(X, public=...)` without asking whether it fits the rows. A sample that does not
        fit then ruins the result.
    """

    bits: int | None = None
    steps: int | None = None
    nonzeros: int | None = None
    frame: Literal["random", "pca"] = "random"
    trust_public: bool = False


@dataclass(frozen=True)
class Spherical:
    """bits: width of the fixed-point grid; default as fine as exact sums allow.
    steps: how many steps with more cells than clusters, and how many with one cell per cluster.
    cells: how many cells there are per cluster at most, before they are merged. Noise may leave fewer.
    energy: the share of the squared totals of columns that kept columns hold. floor: how many deviations of noise a total must
        pass to be kept; default 3, pure 3.9. Four columns per cluster are kept at least.
    cuts: how many deviations an entry of a centre must pass, in either kind of steps. least: entries that a centre keeps, at
        the least.
    of_totals: the share of the budget that finds the columns.
    nonzeros: a public bound on the entries of a row, as in `Tree`. Pure noise (delta=0) needs it.
    signed: whether rows have negative entries that matter. By default negative entries count as 0, whether there are any or not,
        since looking for them would not be private.
    """

    bits: int | None = None
    steps: tuple[int, int] = (4, 2)
    cells: float = 3.0
    energy: float = 0.95
    floor: float | None = None
    cuts: tuple[float, float] = (2.25, 2.5)
    least: int = 32
    of_totals: float = 0.1
    nonzeros: int | None = None
    signed: bool = False


@dataclass(frozen=True)
class KMedian:
    """bits: width of the fixed-point grid; default as fine as exact sums allow.
    smoothing: h of the smoothed distance sqrt(r^2 + h^2) that is minimised, in the units of the data (with
        scaling, in half-widths of the bounds, or of the box that was found); default from released distances.
    recovery: how a cluster's median is found: "weiszfeld" (and "auto": noisy steps), "grid" (drawn by the exponential mechanism
        from places around the centre; at most 3 columns), or "all" (from places over the whole domain, the density of
        section 6.2 of the high-dimensional paper; at most 3 columns. Above, where its sampler would be exact in the limit
        only, "weiszfeld" replaces it).
    """

    bits: int | None = None
    smoothing: float | None = None
    recovery: Literal["auto", "weiszfeld", "grid", "all"] = "auto"


@dataclass(frozen=True)
class Candidates:
    """bits: width of the fixed-point grid; default as fine as exact sums allow.
    repetitions: how many shifted partitions offer candidates. trials: complete runs, of which one is chosen privately.
    swaps: steps of the local search; default n_clusters, at most 20.
    dimension: of the projection, at most 40; default half the logarithm of the noisy number of rows, and all up to 5 columns.
    levels: depth of a partition; default the logarithm of the noisy number of rows.
    kappa: expected number of empty children that become active, a cube; between 2**-60 and 1/4, or partitions would explode.
    most: candidates kept, at random, where more were found.

    For sparse rows:
    nonzeros: a public bound on the entries of a row that are not 0, as in `Tree`.
    recovery: which columns of a mean are released: "threshold" (and "auto": noise in all columns, and those kept that stand out)
        or "columns" (some are chosen by the exponential mechanism, and these alone get noise: Algorithm 5 of the paper,
        corrected; it needs nonzeros, and is pure).
    eta: "columns" chooses 2 nonzeros/eta of them; above 0 and below 1.
    """

    bits: int | None = None
    repetitions: int = 2
    trials: int = 1
    swaps: int | None = None
    dimension: int | None = None
    levels: int | None = None
    kappa: float = 2.0**-10
    most: int = 512
    nonzeros: int | None = None
    recovery: Literal["auto", "threshold", "columns"] = "auto"
    eta: float = 0.5


@dataclass(frozen=True)
class Counts:
    """partition: what is counted: "voronoi", the cells of sites spread over the universe, or "hst", the nodes of a random tree.
    cells: how many cells, a public number; default one for every 4 rows that noise of the budget could hide, from
        `expected_rows` or a noisy number of rows. Only for "voronoi".
    """

    partition: Literal["voronoi", "hst"] = "voronoi"
    cells: int | None = None


@dataclass(frozen=True)
class LocalSearch:
    """seeds: share of the budget for the start, with init="hst"; the others start without looking at the demand.
    candidates: how many points may become centres, spread over the universe; default all of them, up to 20 000.
    """

    seeds: float = 0.5
    candidates: int | None = None


@dataclass(frozen=True)
class Lae:
    """For LocalKMeans(protocol="lae") and campaigns of it. What is left out is the preset's.

    lsh: how near points are kept together: "grid", rotated cubes, or "ball", the lattices of balls that the paper cites.
    alpha: by what share an image may change squared distances, above 0 and at most 1: it has ln(10 k/alpha)/alpha**2 axes, at
        most 8 and never more than columns. None: 4 axes with preset="paper", 3 with "lite".
    c: hashing tells points c times as far apart as near ones from these, k to 1; above sqrt(2), at most 16. A smaller c means
        narrower buckets, which near points share less often, so preset="paper" repeats them more often.
    """

    lsh: Literal["grid", "ball"] = "grid"
    alpha: float | Fraction | None = None
    c: float | Fraction | None = None
