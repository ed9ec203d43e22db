"""Local reports of real devices in numbers that no test run has time for, and the oracles of pure-ldp beside ours.

pure-ldp is optional: `pip install --no-deps pure-ldp==1.2.0 "xxhash<4"` (its wheel does not name what it imports: statsmodels
and patsy, too). It decodes our own k-ary and Hadamard reports, and makes its own hashed ones.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt

import numpy as np

from benchmarks.bar import Bar

REPORTS = 200_000
LENGTHS = (0.0, 0.45, 1.0)
MOST_DEVIATIONS, MOST_OFF = 4.5, 0.03


def run() -> Iterator[Bar]:
    for dim in (2, 3, 11):
        yield from _releases(dim)
    yield _signed_sums()
    try:
        import pure_ldp  # noqa: F401
    except ImportError:
        print("pure-ldp: not run, it is not installed")
        return
    yield from _peers()


def _releases(dim: int) -> Iterator[Bar]:
    """Means and both second moments of vectors that real devices release at epsilon 2."""
    from kveil.collect import vector
    from kveil.collect.encoding import directions
    from kveil.kernel.exact import SystemEntropy
    from kveil.kernel.response import subset_select

    epsilon, rng = Fraction(2), np.random.default_rng()
    book = vector.codebook(dim, epsilon)
    along = rng.standard_normal(dim)
    along /= np.linalg.norm(along)
    worst, cosines = 0.0, []
    for length in LENGTHS:
        n = REPORTS // len(LENGTHS)
        seeds = rng.integers(0, 2**64, n, dtype=np.uint64)
        units = directions(np.tile(length * along, (n, 1)), seeds)
        response = subset_select("report", book.M, book.kappa, epsilon, n_reports=n)
        drawn = response.draw(SystemEntropy(), vector.best_aligned(seeds, units, book.M, book.kappa))
        words = vector.codewords(seeds, drawn, dim) / 2.0**24
        z = words / book.m
        worst = max(worst, float(np.abs((z.mean(axis=0) - length * along) / (z.std(axis=0) / sqrt(n))).max()))
        cosines.append((words * units).sum(axis=1))
    t2 = float((np.concatenate(cosines) ** 2).mean())
    off = max(abs(t2 / book.t2 - 1), abs((1 - t2) / (1 - book.t2) - 1))
    yield Bar(f"{REPORTS} real vectors, D = {dim}: worst mean of {3 * dim}, in deviations", worst, MOST_DEVIATIONS)
    yield Bar(f"{REPORTS} real vectors, D = {dim}: second moments along and across, off by", off, MOST_OFF)


def _signed_sums() -> Bar:
    """The spread of sums for keys that nobody has, against what squared reports say that it is."""
    from kveil.collect import device, vector
    from kveil.collect.answers import Drawn
    from kveil.collect.queries import Query

    epsilon, n, rng = Fraction(4), 5_000, np.random.default_rng()
    book = vector.codebook(4, epsilon)
    centres = np.array([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    query = Query(
        id=0, kind="vec", M=book.M, kappa=book.kappa, key_rule="nearest", centres=(centres.astype(np.float32),), rho=1.0
    )
    seeds = rng.integers(0, 2**64, n, dtype=np.uint64)
    values, _ = device.reports(query, centres[rng.integers(0, 2, n)] + 0.1 * rng.standard_normal((n, 3)), seeds, epsilon)
    told = vector.released(Drawn({0: (seeds, values)}, 3).sums(query, np.arange(100, 20_100, dtype=np.uint64)), book)
    off = float(np.abs(told.sums.std(axis=0) / told.sd - 1).max())
    return Bar("deviation of signed sums told by squared reports, off by", off, MOST_OFF)


def _peers() -> Iterator[Bar]:
    """64 symbols, epsilon 1, geometric shares."""
    from pure_ldp.frequency_oracles import DEServer, HadamardMechServer, LHClient, LHServer

    from kveil.collect import device, hashing, oracles
    from kveil.collect.answers import Drawn
    from kveil.collect.queries import Query

    n, epsilon, rng = 20_000, Fraction(1), np.random.default_rng()
    centres = np.linspace(-0.9, 0.9, 64, dtype=np.float32)[:, None]
    held = np.minimum(rng.geometric(0.1, n) - 1, 63)
    keys, seeds = np.arange(64, dtype=np.uint64), rng.integers(0, 2**64, n, dtype=np.uint64)

    def ours(kind: str, n_values: int) -> tuple[Query, np.ndarray, np.ndarray]:
        query = Query(id=0, kind=kind, M=n_values, kappa=1, key_rule="nearest", centres=(centres,))  # type: ignore[arg-type]
        values, _ = device.reports(query, centres[held].astype(float), seeds, epsilon)
        return query, values, oracles.estimates(query, Drawn({0: (seeds, values)}, 1).support(query, keys), n, epsilon)

    def gap(query: Query, mine: np.ndarray, theirs: list[float], factor: float = 1.0) -> float:
        deviation = sqrt(factor * n * oracles.variance(query.kind, query.M, epsilon, 0.1))
        return float(np.abs(mine - theirs).max() / deviation)

    query, values, mine = ours("grr", 64)
    direct = DEServer(1.0, 64, index_mapper=int)
    for value in values:
        direct.aggregate(int(value))
    theirs = [direct.estimate(i, suppress_warnings=True) for i in range(64)]
    yield Bar("our k-ary reports decoded by pure-ldp: worst gap in deviations", gap(query, mine, theirs), 1e-6)
    query, values, mine = ours("hrr", 2)
    hadamard = HadamardMechServer(1.0, 64, 1, index_mapper=int)
    for row, value in zip(hashing.rows(seeds, 6), values, strict=True):
        hadamard.aggregate([(int(row), 1 - 2 * int(value))])
    theirs = [hadamard.estimate(i, suppress_warnings=True) for i in range(64)]
    yield Bar("our Hadamard reports decoded by pure-ldp: worst gap in deviations", gap(query, mine, theirs), 1e-6)
    query, _, mine = ours("olh", 4)
    client, server = LHClient(1.0, 64, use_olh=True, index_mapper=int), LHServer(1.0, 64, use_olh=True, index_mapper=int)
    for key in held:
        server.aggregate(client.privatise(int(key)))
    theirs = [server.estimate(i, suppress_warnings=True) for i in range(64)]
    yield Bar("hashed reports, ours and those of pure-ldp: worst gap of 64 in deviations", gap(query, mine, theirs, 2.0), 4.0)
