"""The most that the default may cost over the reference: set -> (epsilon, delta) -> ratio. Other cells are only reported."""

GAUSSIANS = {(0.25, 1e-6): 1.005, (1, 1e-6): 1.002}
REAL = {(1, 0): 1.03, (1, 1e-6): 1.03}

LIMITS: dict[str, dict[tuple[float, float], float]] = {
    "digits": {(0.25, 1e-6): 1.84, (1, 1e-6): 1.33, (4, 1e-6): 1.065, (4, 0): 1.45},
    "15 in the square": {(0.25, 1e-6): 1.003, (1, 1e-6): 1.001, (0.25, 0): 1.002},
    "15 in the ball, d=4": GAUSSIANS,
    "15 in the ball, d=8": GAUSSIANS,
    "15 in the ball, d=16": GAUSSIANS,
    "15 in the ball, d=32": GAUSSIANS,
    "64 tight, d=100": {(0.25, 1e-6): 1.45, (1, 1e-6): 1.02, (4, 1e-6): 1.005},
    "64 tight, k=16": {(1, 1e-6): 1.035},
    "64 overlapping, d=100": {(1, 1e-6): 1.15},
    "MNIST": {(0.1, 1e-6): 1.10, (1, 1e-6): 1.015, (1, 0): 1.15, (4, 0): 1.08},
    "adult": REAL,
    "diamonds": REAL,
    "UK": REAL,
    "cities": REAL,
    "flights": REAL,
    "s1": {(1, 0): 1.05},
    "s2": {(1, 0): 1.05},
    "s4": {(1, 0): 1.05},
    "birch1": {(1, 0): 1.05},
    "a1": {(0.25, 0): 2.5, (1, 0): 1.08},
    "unbalance": {(0.25, 0): 5.4, (1, 0): 1.05},
    "s1, bounds x10": {(0.25, 0): 1.6, (1, 0): 1.05},
    "s1, bounds x100": {(0.25, 0): 3, (1, 0): 1.2},
}
