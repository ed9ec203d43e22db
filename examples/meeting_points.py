"""Where should five meeting points for riders lie, if no rider's home may be given away?

Fits the same made-up city with smaller and smaller budgets and shows what privacy costs.
"""

import numpy as np

from kveil import PrivateKMeans

rng = np.random.default_rng(1)
places = np.array([[2.0, 3.0], [7.5, 2.0], [5.0, 5.5], [1.5, 8.0], [8.5, 8.0]])
homes = np.repeat(places, 4000, axis=0) + 0.5 * rng.standard_normal((20_000, 2))  # made-up people

open_books = PrivateKMeans(5, epsilon=float("inf"), bounds=(0, 10), random_state=0).fit(homes)
floor = -open_books.score(homes)

print("epsilon   cost over the cost without privacy")
ratios = {}
for epsilon in (4.0, 1.0, 0.25):
    costs = [-PrivateKMeans(5, epsilon=epsilon, bounds=(0, 10), random_state=0).fit(homes).score(homes) for _ in range(5)]
    ratios[epsilon] = float(np.median(costs)) / floor
    print(f"{epsilon:7g}   {ratios[epsilon]:.3f}")

assert ratios[4.0] < 1.1, "with epsilon 4 and 4000 riders a place, privacy should cost almost nothing"
