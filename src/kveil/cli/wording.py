"""Messages of the library in the words of the shell: `--bounds`, not `bounds=`.

The library speaks of its parameters, and does not know who calls it. A command's options are called after those parameters, so
its own list of options says which words to change, and no message has to be written twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

ALIASES = {"n_clusters": "k", "max_iter": "n_steps"}  # parameters that an option is called differently for
CALLS = {  # functions of the library that are commands
    "kveil.inspect": "`kveil inspect`",
    "kveil.find_bounds": "`kveil bounds`",
    "find_bounds": "`kveil bounds`",
    "kveil.plan": "`kveil plan`",
    "kveil.compare": "`kveil compare`",
    "kveil.evaluate": "`kveil evaluate`",
    "kveil.describe": "`kveil describe`",
    "cost_curve": "`kveil curve`",
    "Ledger.create": "`kveil ledger init`",
    "release.plot": "`kveil plot --graph EDGES --xy COORDINATES`",
}
FLAGS = {"overwrite": "force"}
ASIDES = (  # of types and objects, which a shell has not
    " A list of tuples is one pair per column, a tuple of lists is (lows, highs).",
    ", or the rows",
    " Ask the universe: universe.nearest(release.centers).",
    "Release.save or ",
)
PAIRS = (  # two numbers, as they are typed
    (r"(--[\w-]+) must be two whole numbers \(low, high\) with", r"\1 takes LOW,HIGH: two whole numbers with"),
    (r"(?<== )low < high(?= <= \d)", "LOW < HIGH"),
    (r"(?<=, got )[(\[](-?\d+), (-?\d+)[)\]]", r"\1,\2"),
)
DOMAIN = ("bounds", "center", "radius")  # often named together, without a verb
VERBS = r"(?:must|is|takes|belongs?|names?|has|needs|gives?|repeats|bounds|adds|cannot|and|does|of)\b"


def in_shell_words(text: str, options: Iterable[Any]) -> str:
    """A message in which parameters are options.

    >>> from types import SimpleNamespace as Option
    >>> bounds, scaling = (Option(name=name, opts=[f"--{name}"], param_type_name="option") for name in ("bounds", "scaling"))
    >>> in_shell_words('bounds is missing. Pass bounds=(low, high), or scaling="private".', [bounds, scaling])
    '--bounds is missing. Pass --bounds LOW,HIGH, or --scaling private.'
    """
    options = tuple(options)
    typed = {each.name: max(each.opts, key=len) for each in options if each.param_type_name == "option"}
    typed |= {name: typed[own] for name, own in ALIASES.items() if own in typed}
    for call, command in CALLS.items():
        text = re.sub(rf"`?(?<![\w.`]){re.escape(call)}(?!\w|\.\w|=)(?:\([^()]*\))?`?", command, text)
    text = re.sub(r"(`kveil [a-z ]+`) or \1", r"\1", text)  # the library names both ways
    text = re.sub(r"(?<!\w)\w+=(?:True|\.\.\.) \((--[\w-]+)\)", r"\1", text)  # and parameters that no option is called after
    for aside in ASIDES:
        text = text.replace(aside, "")
    said = {each.name: max(each.opts, key=len) for each in options if getattr(each, "is_flag", False)}  # without a value
    said |= {name: said[own] for name, own in FLAGS.items() if own in said}
    for name, flag in said.items():  # the library may name both
        text = re.sub(rf"(?<![\w.\-\"'`/(]){name}=True\b(?: \({flag}\))?", flag, text)
    for name, option in typed.items():
        text = _without_python(text, name, option)
    if set(DOMAIN) <= typed.keys():
        text = _with_domain(text, {name: typed[name] for name in DOMAIN})
    if re.search(PAIRS[0][0], text):
        for pattern, written in PAIRS:
            text = re.sub(pattern, written, text)
    return text


def _with_domain(text: str, typed: dict[str, str]) -> str:
    """Options where bounds, center and radius are listed, or one needs another."""
    name = rf"(?<![\w-])(?:{'|'.join(typed)})\b"
    listed = rf"(?:{name}(?:, or |, | or | and ))+{name}|(?<= needs ){name}(?=:)"
    return re.sub(listed, lambda found: re.sub(name, lambda one: typed[one[0]], found[0]), text)


def _without_python(text: str, name: str, option: str) -> str:
    before = r"(?<![\w.\-\"'`/(])"
    for pattern, written in (
        (rf"{before}{name}=\(low, high\)", f"{option} LOW,HIGH"),
        (rf"{before}{name}=\"([\w-]+)\"", rf"{option} \1"),
        (rf"{before}{name}=('[^']*')", rf"{option} \1"),
        (rf"{before}{name}=\"[^\"]*\"", option),
        (rf"{before}{name}=([A-Za-z]\w*)", rf"{option} \1"),
        (rf"{before}{name}=(?:\[[^\]]*\]|\([^)]*\)|\.\.\.|(?=[\s,.;:)]))", option),
        (rf"{before}{name}=(\d[\w.*-]*\w|\d)", rf"{option} \1"),
    ):
        text = re.sub(pattern, written, text)
    if "_" in name:
        return re.sub(rf"{before}{name}(?![\w=(])", option, text)
    return re.sub(rf"(^|[.:;] ){name}(?= {VERBS})", rf"\1{option}", text)
