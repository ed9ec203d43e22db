"""Text that other people's programs will show: nothing in a name may act as markup or steer a terminal."""

from __future__ import annotations

import re

from kveil.kernel.loss import Guarantee

MODELS = {"curator": "central model", "federation": "federated model", "stream": "central model, stream", "local": "local model"}


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
    return f"{broken}{promise}, {MODELS.get(guarantee.trust, guarantee.trust)}."


def printable(text: str, width: int) -> str:
    """`text` on one line of at most `width` characters, without control characters."""
    clean = "".join(character if character.isprintable() else " " for character in text)
    return clean if len(clean) <= width else clean[: max(0, width - 1)] + "…"


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
