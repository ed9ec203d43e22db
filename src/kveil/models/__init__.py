"""The estimators people import: `fit` checks, reserves, opens a desk, runs a method, and keeps what may be shared."""
