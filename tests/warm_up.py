"""Small fits, run in the process that `warm` forks others from: what a fit loads at its first use is then there in all."""

import warnings

import numpy as np

from kveil import PrivateKMeans

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for delta in (0.0, 1e-6):
        PrivateKMeans(2, epsilon=1.0, delta=delta, bounds=(0, 1)).fit(np.eye(2))
