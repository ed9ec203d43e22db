"""Clustering over rows that stay with their holders: a coordinator asks, parties answer with noise of their own."""

from kveil.federate.calling import Calling, serve
from kveil.federate.coordinator import Coordinator
from kveil.federate.door import Door
from kveil.federate.keys import Keys, make_keys
from kveil.federate.link import InProcess, Link, Lost, Transport
from kveil.federate.logged import Logged
from kveil.federate.party import Party
from kveil.federate.policy import Policy
from kveil.federate.receiving import Receiving, call_in

__all__ = [
    "Calling", "Coordinator", "Door", "InProcess", "Keys", "Link", "Logged", "Lost", "Party", "Policy", "Receiving",
    "Transport", "call_in", "make_keys", "serve",
]  # fmt: skip
