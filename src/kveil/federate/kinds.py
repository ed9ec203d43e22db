"""All kinds of questions, by the word that messages call them."""

from __future__ import annotations

from kveil.federate.picks import PickMessage, SampleMessage, TotalMessage
from kveil.federate.questions import CellsMessage, Message, SpreadMessage, StatsMessage, SumsMessage
from kveil.federate.sealed import FirstMessage, SeedMessage, UpdateMessage

QUESTIONS: dict[str, type[Message]] = {
    "cells": CellsMessage,
    "sums": SumsMessage,
    "spread": SpreadMessage,
    "stats": StatsMessage,
    "sample": SampleMessage,
    "total": TotalMessage,
    "pick": PickMessage,
    "seed": SeedMessage,
    "update": UpdateMessage,
    "first": FirstMessage,
}

EXACT = frozenset({"seed", "update", "first"})  # never with a promise
NOISY = frozenset({"sample", "total", "pick"})  # never without one
