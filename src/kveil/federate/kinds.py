"""All kinds of questions, by the word that messages call them."""

from __future__ import annotations

from kveil.federate.picks import PickQuestion, SampleQuestion, TotalQuestion
from kveil.federate.questions import CellsQuestion, Question, SpreadQuestion, StatsQuestion, SumsQuestion
from kveil.federate.sealed import FirstQuestion, SeedQuestion, UpdateQuestion

QUESTIONS: dict[str, type[Question]] = {
    "cells": CellsQuestion,
    "sums": SumsQuestion,
    "spread": SpreadQuestion,
    "stats": StatsQuestion,
    "sample": SampleQuestion,
    "total": TotalQuestion,
    "pick": PickQuestion,
    "seed": SeedQuestion,
    "update": UpdateQuestion,
    "first": FirstQuestion,
}

EXACT = frozenset({"seed", "update", "first"})  # never with a promise
NOISY = frozenset({"sample", "total", "pick"})  # never without one
