"""Clustering over rows that stay with their holders: a coordinator asks, parties answer with noise of their own."""

from kveil.federate.coordinator import Coordinator
from kveil.federate.link import InProcess, Link, Lost, Transport
from kveil.federate.party import Party
from kveil.federate.policy import Policy

__all__ = ["Coordinator", "InProcess", "Link", "Lost", "Party", "Policy", "Transport"]
