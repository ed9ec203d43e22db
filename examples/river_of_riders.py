"""A week of rides comes hour by hour and is seen once. Where do riders start, if no ride may be given away?

Compares a stream that keeps 10 000 points, which is not private, with one that releases its centres at the end, with noise.
"""

import numpy as np

from kveil import Ledger, StreamKMeans

places = np.random.default_rng(1).uniform(1, 9, (6, 2))  # made-up starting points, in kilometres


def hours():
    """Night rides start in the west, day rides in the east: the stream is as sorted as streams are."""
    rng = np.random.default_rng(2)
    by_longitude = places[np.argsort(places[:, 0])]
    for hour in range(7 * 24):
        near = by_longitude[:3] if hour % 24 < 8 else by_longitude[3:]
        yield near[rng.integers(0, 3, 600)] + 0.3 * rng.standard_normal((600, 2))


open_books = StreamKMeans(6, random_state=0).fit(hours())

ledger = Ledger.memory("rides", epsilon=1.0, relation="add-remove")
private = StreamKMeans(6, epsilon=1.0, bounds=(0, 10), ledger=ledger, random_state=0)
for number, batch in enumerate(hours()):
    private.partial_fit(batch, source="rides", seq=number)
private.finish()

week = np.concatenate(list(hours()))  # only to compare: neither stream held it
floor = -open_books.score(week)
ratio = -private.score(week) / floor
print(f"{len(open_books.synopsis_)} points stood for {open_books.synopsis_.weights.sum()} rides")
print(f"cost of the private centres over the others: {ratio:.3f}")
print(private.guarantee_.trust, "model,", ledger.spent())

assert open_books.synopsis_.weights.sum() == len(week), "every ride counts once"
assert ratio < 1.05, "a hundred thousand rides hide one ride well"
