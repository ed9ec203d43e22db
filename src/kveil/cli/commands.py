"""Which commands there are, and where each one is written. A command is loaded when it is typed, and no other with it."""

from __future__ import annotations

from typing import NamedTuple

FIT, JUDGE, SHARE, OTHERS = (
    "Find centres",
    "Use and judge a release",
    "Budgets, checks and signatures",
    "Other trust models and research",
)


class Home(NamedTuple):
    """The module and the name of a command, or of a group of commands, and what `kveil --help` says of it."""

    module: str
    name: str
    help: str
    panel: str


COMMANDS = {
    "demo": Home("demo", "demo", "Try kveil on a made-up city, from a table to a saved release.", FIT),
    "inspect": Home("inspect", "inspect", "Look at a table openly: rows, ranges and broken cells. Not private.", FIT),
    "bounds": Home("bounds", "bounds", "Find bounds of columns privately, for a charge of their own.", FIT),
    "plan": Home("plan", "plan", "See what to expect of a fit before anything is spent.", FIT),
    "fit": Home("fit", "fit", "Find private cluster centres of a table, and save them with their guarantee.", FIT),
    "stream": Home("stream", "app", "Find private centres of rows that come in batches.", FIT),
    "compare": Home("compare", "compare", "Compare methods on public rows, or on the sample of a release.", FIT),
    "verdict": Home("verdict", "verdict", "Say what the noise did to a release: good, rough or noise.", JUDGE),
    "report": Home("report", "report", "Write a page about a release, to hand over, with pictures.", JUDGE),
    "plot": Home("plot", "plot", "Draw a release: a map or a profile of its centres.", JUDGE),
    "predict": Home("predict", "predict", "Write the nearest centre of every row. Not private.", JUDGE),
    "recluster": Home("after", "recluster", "Make another number of centres from a release, without a charge.", JUDGE),
    "curve": Home("after", "curve", "Show what other numbers of clusters would cost, without a charge.", JUDGE),
    "sample": Home("after", "sample", "Make up rows that lie about where the rows of a release did.", JUDGE),
    "evaluate": Home("evaluate", "evaluate", "Measure how well a release fits rows, for a charge.", JUDGE),
    "describe": Home("describe", "describe", "Find keywords that stand out in each cluster, for a charge.", JUDGE),
    "guarantee": Home("guarantee", "guarantee", "Show what a release promises, with every charge and assumption.", SHARE),
    "card": Home("verify", "card", "Show the page that says what a release means for a person.", SHARE),
    "verify": Home("verify", "verify", "Check a release that you received.", SHARE),
    "ledger": Home("ledger", "app", "Make budgets that several fits draw on, and see what is left.", SHARE),
    "keys": Home("keys", "app", "Make keys to sign releases with.", SHARE),
    "audit": Home("audit", "audit", "Attack the promise of a model, kveil's own or another library's.", SHARE),
    "federate": Home("federate", "app", "Find centres of rows that several parties hold and keep to themselves.", OTHERS),
    "collect": Home("collect", "app", "Run campaigns in which every device randomises its own report.", OTHERS),
    "reproduce": Home("reproduce", "app", "Draw published figures anew, with calibrations that hold.", OTHERS),
}  # fmt: skip
