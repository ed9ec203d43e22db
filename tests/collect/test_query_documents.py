"""Queries as a manifest holds them: read back as they were, and refused by every field that a stranger might bend."""

import base64
import copy
import json

import numpy as np
import pytest

from kveil.collect.documents import encode, query_document, read_query
from kveil.collect.queries import Fold, Query, public_generator
from kveil.errors import InvalidValue
from kveil.partition.lsh import BallLattice, Buckets, RotatedGrid
from kveil.partition.public_map import PublicMap, joint_lift

RNG = np.random.default_rng(1)
ONE, TWO = PublicMap.drawn(3, 2, RNG), PublicMap.drawn(3, 2, RNG)
SOME = RNG.uniform(-1, 1, (4, 2)).astype(np.float32)
CENTRES = RNG.uniform(-1, 1, (5, 3)).astype(np.float32)
HEAVY = np.array([0, 2], dtype=np.uint64), np.array([1, 9], dtype=np.uint64)
GRID, BALLS = RotatedGrid.drawn(2, 0.5, RNG), BallLattice.drawn(2, 0.5, RNG)
CUBES = Buckets(ONE, 2, 1, *HEAVY, GRID)
QUERIES = {
    "cell": Query(id=1, kind="olh", M=4, kappa=1, key_rule="cell", maps=(ONE,), depth=9, weight=7),
    "cell sum": Query(id=1, kind="vec", M=256, kappa=90, key_rule="cell", maps=(ONE,), depth=2, rho=1.0),
    "nearest": Query(id=0, kind="grr", M=5, kappa=1, key_rule="nearest", centres=(CENTRES,)),
    "nearest image": Query(id=0, kind="hrr", M=2, kappa=1, key_rule="nearest", maps=(ONE,), centres=(SOME,)),
    "residual": Query(id=0, kind="vec", M=256, kappa=9, key_rule="nearest", centres=(np.ones((2, 3), np.float32),), rho=0.25),
    "product": Query(
        id=0, kind="vec", M=256, kappa=9, key_rule="product", maps=(ONE, TWO), centres=(SOME, SOME[:3]),
        lift=joint_lift([ONE.axes, TWO.axes]), rho=1.0,
    ),
    "bucket": Query(id=0, kind="olh", M=9, kappa=1, key_rule="bucket", buckets=CUBES),
    "ball": Query(id=0, kind="vec", M=256, kappa=9, key_rule="bucket", buckets=Buckets(ONE, 2, 1, *HEAVY, BALLS)),
    "bit": Query(id=0, kind="olh", M=9, kappa=1, key_rule="bucket", buckets=CUBES, fold=Fold(5, 64, 3)),
}  # fmt: skip


def written(query):
    """Through text, as a manifest is."""
    return json.loads(json.dumps(query_document(query)))


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_read_back_as_it_was_written(name):
    query = QUERIES[name]
    back = read_query(written(query), 3)
    assert query_document(back) == query_document(query)
    assert (back.kind, back.key_rule, back.n_keys, back.length(3)) == (query.kind, query.key_rule, query.n_keys, query.length(3))
    points = np.random.default_rng(2).uniform(-0.5, 0.5, (40, 3))
    from kveil.collect.encoding import preferred

    seeds = np.arange(40, dtype=np.uint64)
    assert (preferred(back, points, seeds) == preferred(query, points, seeds)).all()


def test_the_published_query():
    plain = PublicMap(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32))
    query = Query(id=0, kind="olh", M=4, kappa=1, key_rule="cell", maps=(plain,), depth=4)
    text = (
        '{"M":4,"depth":4,"id":0,"kappa":1,"key_rule":"cell","kind":"olh","map":{"A":"AACAPwAAAAAAAAAAAACAPw==","d":2,'
        '"gamma":"AAAAAAAAAAA="},"weight":1}'
    )
    assert json.dumps(query_document(query), sort_keys=True, separators=(",", ":")) == text


def floats(*numbers):
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


def bent(name, **changes):
    document = copy.deepcopy(written(QUERIES[name]))
    for key, value in changes.items():
        document[key] = value
    return document


BAD = {
    "a field too many": bent("cell", mark=1),
    "a kind of another world": bent("cell", kind="raw"),
    "a rule of another world": bent("cell", key_rule="exact"),
    "no values": bent("cell", M=1),
    "too many values": bent("cell", M=2**16 + 1),
    "nothing preferred": bent("cell", kappa=0),
    "everything preferred": bent("residual", kappa=256),
    "two preferred keys": bent("cell", kappa=2),
    "a fraction": bent("cell", depth=2.0),
    "a truth": bent("cell", id=True),
    "a negative id": bent("cell", id=-1),
    "no weight": bent("cell", weight=0),
    "depth 0": bent("cell", depth=0),
    "a tree too deep": bent("cell", depth=61),
    "text for a number": bent("cell", depth="9"),
    "no map": bent("cell", map=None),
    "a map with more": bent("cell", map={**written(QUERIES["cell"])["map"], "x": 1}),
    "a map of other columns": bent("cell", map={"A": floats(*range(8)), "d": 2, "gamma": floats(0, 0)}),
    "a map that is no number": bent("cell", map={"A": floats(*[np.nan] * 6), "d": 2, "gamma": floats(0, 0)}),
    "centres that are no number": bent("residual", centres=floats(*[np.inf] * 6)),
    "huge centres": bent("residual", centres=floats(*[3e38] * 6)),
    "no centres": bent("residual", centres=""),
    "centres of other columns": bent("residual", centres=floats(1, 2, 3, 4)),
    "half a number": bent("residual", centres=base64.b64encode(b"12345").decode()),
    "no base64": bent("residual", centres="****"),
    "loose base64": bent("residual", centres=floats(*range(6)) + "\n"),
    "rho 0": bent("residual", rho=floats(0.0)),
    "rho below 0": bent("residual", rho=floats(-1.0)),
    "rho that is no number": bent("residual", rho=floats(np.nan)),
    "two rhos": bent("residual", rho=floats(1.0, 1.0)),
    "keys that are not the values": bent("nearest", M=6),
    "bits of three": bent("nearest image", M=3),
    "one map for a product": bent("product", map=[written(QUERIES["product"])["map"][0]]),
    "a product of keys": bent("product", kind="olh", kappa=1),
    "a lift of other columns": bent("product", lift=floats(1, 2, 3)),
    "heavy cells out of order": bent("bucket", heavy_cells=[encode(HEAVY[0][::-1]), encode(HEAVY[1])]),
    "heavy cells out of range": bent("bucket", heavy_cells=[encode(np.array([4], dtype=np.uint64)), encode(HEAVY[1])]),
    "no heavy cell above": bent("bucket", heavy_cells=["", encode(HEAVY[1])]),
    "no width": bent("bucket", lsh={**written(QUERIES["bucket"])["lsh"], "width": floats(0.0)}),
    "a lattice of both kinds": bent("bucket", lsh={**written(QUERIES["bucket"])["lsh"], **written(QUERIES["ball"])["lsh"]}),
    "bins that are no power of 2": bent("bit", fold={"seed": 1, "bins": 3, "bit": 0}),
    "a folded vector": bent("ball", fold={"seed": 1, "bins": 4, "bit": 0}),
    "a fold with more": bent("bit", fold={"seed": 1, "bins": 4, "bit": 0, "x": 1}),
    "a list": [1],
    "nothing": None,
}


@pytest.mark.parametrize("name", BAD)
def test_a_bent_query_is_refused_before_anything_is_read(name):
    with pytest.raises(InvalidValue, match="Nothing was read and nothing was spent"):
        read_query(BAD[name], 3)


def test_a_missing_field_is_refused():
    for name, query in QUERIES.items():
        for field in written(query):
            document = {key: value for key, value in written(query).items() if key != field}
            if (name, field) in (("nearest image", "map"), ("bit", "fold")):
                continue  # without it, another query
            with pytest.raises(InvalidValue):
                read_query(document, 3)


def test_too_many_centres_are_refused():
    many = Query(id=0, kind="olh", M=4, kappa=1, key_rule="nearest", centres=(np.zeros((4097, 3), dtype=np.float32),))
    with pytest.raises(InvalidValue, match="4096"):
        read_query(written(many), 3)


def test_public_choices_can_be_repeated_by_anyone():
    assert public_generator(b"campaign", "round", 1).integers(2**60) == public_generator(b"campaign", "round", 1).integers(2**60)
    assert public_generator(b"campaign", "round", 1).integers(2**60) != public_generator(b"campaign", "round", 2).integers(2**60)
