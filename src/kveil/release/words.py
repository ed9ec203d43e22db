"""Text that other people's programs will show: nothing in a name may act as markup or steer a terminal."""

from __future__ import annotations

import re
from math import exp

from kveil.kernel.loss import Guarantee

RULES = {  # how a ledger adds up, for whoever reads its budget
    "pure": "The epsilons of all releases add up.",
    "zcdp": "The losses of all releases add up as zCDP: many small ones cost less than the sum of their epsilons.",
    "approx": "The epsilons of all releases add up, and so do their deltas.",
}


def sentence(guarantee: Guarantee) -> str:
    """The sentence a reader of a figure must not miss.

    >>> from kveil.kernel.loss import PrivacyUnit, no_guarantee
    >>> sentence(no_guarantee("add-remove", PrivacyUnit(), "curator"))
    'No privacy guarantee: computed without noise.'
    """
    if guarantee.route == "none":
        return "No privacy guarantee: computed without noise."
    change = "add or remove" if guarantee.relation == "add-remove" else "replace one"
    promise = f"(ε = {guarantee.epsilon:.4g}, δ = {guarantee.delta:.3g}) per {guarantee.unit.kind}, {change}"
    broken = "" if guarantee.valid else "NOT VALID, hides nothing it claims to hide: "
    return f"{broken}{promise}, {guarantee.trust} model."


def promise(guarantee: Guarantee) -> tuple[str, ...]:
    """What is promised, in two lines, and before them why that is not valid, if it is not.

    >>> from kveil.kernel.loss import PrivacyUnit, no_guarantee
    >>> promise(no_guarantee("add-remove", PrivacyUnit(), "curator"))
    ('No privacy guarantee: the result was computed without noise. Do not let it leave the house.',)
    """
    if guarantee.route == "none":
        return ("No privacy guarantee: the result was computed without noise. Do not let it leave the house.",)
    change = "adding or removing" if guarantee.relation == "add-remove" else "replacing"
    factor = f"{exp(guarantee.epsilon):.3g}" if guarantee.epsilon < 14 else f"e^{guarantee.epsilon:.4g}"
    but = f", plus {guarantee.delta:.3g}" if guarantee.delta else ""
    unit = guarantee.unit
    return (
        *([] if guarantee.valid else [f"NOT VALID: {'; '.join(guarantee.reasons)}."]),
        f"Promise: epsilon = {guarantee.epsilon:.6g}, delta = {guarantee.delta:.3g} for {unit}; {guarantee.trust} model.",
        f"Whoever sees the release: {change} {unit} makes no outcome more than {factor} times as likely{but}.",
    )


def printable(text: str, width: int) -> str:
    """`text` on one line of at most `width` characters, without control characters."""
    clean = "".join(character if character.isprintable() else " " for character in text)
    return clean if len(clean) <= width else clean[: max(0, width - 1)] + "…"


def shortened(text: str, width: int) -> str:
    """`text` on one line of at most `width` characters: a longer one loses its middle, since names often differ at their ends.

    >>> shortened("income of the household in the year 2024", 20)
    'income of …year 2024'
    """
    clean = printable(text, len(text))
    return clean if len(clean) <= width else f"{clean[: width // 2]}…{clean[len(clean) - (width - 1) // 2 :]}"


def escaped(text: str) -> str:
    """`text` as Markdown that shows it literally. Underscores inside a word mean nothing and stay as they are."""
    clean = "".join(character if character.isprintable() else " " for character in text)
    clean = clean.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    clean = re.sub(r"([\\`*\[\]|~$])", r"\\\1", clean)
    clean = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", clean)
    return re.sub(r"^(\s*)([#=])", r"\1\\\2", clean)


def code(text: str) -> str:
    """`text` as Markdown code."""
    return f"`{printable(text, len(text)).replace('`', chr(39))}`"
