"""The estimators people import; each `fit` is the flow source, summary, privatise, solve, release and little else."""
