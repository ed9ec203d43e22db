"""Signed manifests of whole campaigns, for vectors: every protocol that a browser answers, in both of its versions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from campaigns import KEY, OPEN
from exact_answers import Exact

from kveil.collect.campaign import Campaign, protocol_of
from kveil.collect.manifest import FIRST, Manifest, Signed
from kveil.collect.queries import Outcome

PLACES = np.random.default_rng(3).uniform(-0.3, 0.3, (3, 10))  # public: of nobody
WITH = {
    "grid": [1, 2, 3], "grid-2": [1, 2, 3], "refine": [2, 4, 5], "refine-2": [1, 2, 4, 5, 10], "lma": [2, 5], "lma-2": [2, 5],
    "lae": [2],
}  # fmt: skip


def chain_of(method: str, n_columns: int, **terms: Any) -> list[Signed]:
    """All rounds of a campaign that is called so in its manifests; what people answer is made up."""
    name = method.removesuffix("-2")
    stated = {
        "name": f"{method} in {n_columns}", "n": 100_000, "n_clusters": 3, "epsilon": Fraction(3, 2),
        "center": [50.0, 10.0, -3.0, 0.5, 7.0, 1.0, -1.0, 2.0, 0.0, 4.0][:n_columns], "radius": 5.0, "protocol": name,
    }  # fmt: skip
    campaign = Campaign(**{**stated, **terms})
    header = replace(campaign.header(KEY.public), method=method)
    protocol, answers = protocol_of(header), Exact(PLACES[:, :n_columns], [500, 300, 200], header.epsilon)
    chain: list[Signed] = []
    now = protocol.first()
    while not isinstance(now, Outcome):
        prev = chain[-1].hash if chain else FIRST
        chain.append(Manifest(header, now.number, prev, *OPEN, 0, now.queries).signed(KEY))
        now = protocol.next(now, answers, bytes.fromhex(chain[-1].hash))
    return chain


def all_chains() -> dict[str, list[Signed]]:
    made = {f"{method} in {columns}": chain_of(method, columns) for method, many in WITH.items() for columns in many}
    return made | {"a whole epsilon": chain_of("grid-2", 2, epsilon=1), "a small one": chain_of("grid-2", 2, epsilon="1/9")}
