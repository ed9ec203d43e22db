"""Small fits, run in the process that `warm` forks others from: what a fit loads at its first use is then there in all."""

import gc
import warnings

import numpy as np

import compiling
import repeated
from kveil import PrivateKMeans

repeated.install()
compiling.install()

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for delta in (0.0, 1e-6):
        PrivateKMeans(2, epsilon=1.0, delta=delta, bounds=(0, 1)).fit(np.eye(2))
    rows = np.random.default_rng(0).uniform(size=(3000, 2))
    PrivateKMeans(8, epsilon=1000.0, bounds=(0, 1), n_steps=3).fit(rows)  # later steps have kernels of their own

gc.collect()
gc.freeze()  # else every child would look through all of it, and copy the pages that it looks at
