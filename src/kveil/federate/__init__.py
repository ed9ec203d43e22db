"""Clustering over rows that stay with their holders: a coordinator asks, parties answer with noise of their own."""

from kveil.federate.party import Party
from kveil.federate.policy import Policy

__all__ = ["Party", "Policy"]
