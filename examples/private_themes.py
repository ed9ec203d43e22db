"""What do people write about, if nobody's text may be given away?

From texts to themes: numbers for every text by a public model, private clusters of these, and words for each cluster. Everything
that is learned from texts before `fit` (words, their weights, directions) is learned from PUBLIC texts, so that a private text
becomes numbers by itself. With ../shared/data the texts are Reuters news; without it they are made up.

A sentence encoder plugs in at `embedded`: any function of one text whose weights are public, such as
`SentenceTransformer(name).encode(texts)`, gives rows that metric="cosine" reads by their direction, and nothing else changes.
"""

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfTransformer
from sklearn.preprocessing import normalize

from kveil import Ledger, PrivateKMeans, describe

REUTERS = Path(__file__).parents[2] / "shared" / "data" / "text_reuters_r8.npz"


def reuters() -> tuple[csr_array, np.ndarray]:
    """How often every text has every word."""
    with np.load(REUTERS) as file:
        shape = (len(file["indptr"]) - 1, int(file["n_features"]))
        counts = csr_array((file["counts"].astype(float), file["indices"].astype(int), file["indptr"]), shape=shape)
        return counts, np.array(file["terms"][0].decode().split("\n"))


def made_up() -> tuple[csr_array, np.ndarray]:
    """6000 short texts about eight things; every thing has words of its own, and all share some."""
    rng = np.random.default_rng(0)
    things = ["wheat", "oil", "ship", "bank", "metal", "trade", "coffee", "loan"]
    words = np.array([f"{thing}{n}" if n else thing for thing in things for n in range(20)] + [f"common{n}" for n in range(40)])
    thing = rng.integers(0, 8, 6000)
    own = thing[:, None] * 20 + np.minimum(rng.geometric(0.2, (6000, 12)) - 1, 19)
    said = np.hstack([own, rng.integers(160, 200, (6000, 8))])
    counts = csr_array((np.ones(said.size), (np.repeat(np.arange(6000), 20), said.ravel())), shape=(6000, 200))
    counts.sum_duplicates()
    return counts, words


counts, words = reuters() if REUTERS.exists() else made_up()
order = np.random.default_rng(1).permutation(counts.shape[0])
public, private = counts[order[:2000]], counts[order[2000:]]  # say, an open archive, and what people wrote

# From public texts alone: how much a word weighs, and 50 directions. `embedded` then looks at one text at a time.
weights = TfidfTransformer(sublinear_tf=True).fit(public)
directions = TruncatedSVD(50, random_state=0).fit(weights.transform(public))


def embedded(texts: csr_array) -> np.ndarray:
    return np.asarray(directions.transform(weights.transform(texts)))


rows, sample = embedded(private), embedded(public)
people = Ledger.memory("writers", 2.0, 1e-6, relation="add-remove", rule="zcdp")
model = PrivateKMeans(8, epsilon=1.0, delta=1e-6, metric="cosine", ledger=people, random_state=0).fit(rows, public=sample)

# Public keywords: the 300 words that most public texts have, without those that say nothing.
common = np.argsort(-np.bincount(public.indices, minlength=len(words)), kind="stable")
kept = [place for place in common if words[place] not in ENGLISH_STOP_WORDS and len(words[place]) > 2][:300]
themes = describe(model.release_, rows, private[:, kept], 0.9, ledger=people, vocabulary=words[kept].tolist(), delta=1e-6)

for number, theme in enumerate(themes.clusters):
    shown = ", ".join(f"{word.name} ({word.lift.low:.1f} to {word.lift.high:.1f})" for word in theme.words[:5])
    print(f"cluster {number}, about {theme.size.value:.0f} texts: {shown}")
print("in brackets: how many times as frequent as in all texts")
found = KMeans(8, n_init=3, random_state=0).fit(normalize(rows)).cluster_centers_
open_books = np.max(normalize(rows) @ normalize(found).T, axis=1).mean()
print(f"mean cosine of a text with its centre: {model.score(rows):.3f}; of k-means without privacy: {open_books:.3f}")
print(f"spent in all: epsilon {people.spent().epsilon:.3g} of 2, delta {people.spent().delta:.3g}")

assert 1 - model.score(rows) < 1.1 * (1 - open_books), "with a public archive privacy should cost little"
assert sum(bool(theme.words) for theme in themes.clusters) >= 5, "most clusters should have words"
