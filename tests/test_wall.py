"""The wall between secret and public: rows are read in two rooms, and whoever is handed rows is written in two rooms.

The source is read as syntax trees, so that a class or a call is found where it is written, whether or not a test runs it. Each
rule is also shown a snippet that breaks it. Import contracts and ruff's SLF001 (no private member of another object in `methods`
and `models`) stand beside it, in pyproject.toml. A determined caller gets through; accidents do not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import kveil

HOUSE = Path(kveil.__file__).parent
QUESTION, MECHANISM = "kveil.questions.base.Question", "kveil.desk.base.Mechanism"
NOISE = {f"kveil.kernel.{name}" for name in ("gate", "noise", "choice", "response", "exact")}
DESKS = ("Fixed", "FixedDesk", "Pool")  # without a law, or an epsilon, their answers are exact
EXACT = {"kveil.federate.sealed", "kveil.methods.lloyd", "kveil.methods.universe.counts"}
LOOKS_AT_ROWS = {  # for whoever holds the rows: labels of predict, a stream without privacy, a person's own report, public rows
    "kveil.cli.collect", "kveil.cli.predict", "kveil.models.clusterer", "kveil.models.local_kmeans", "kveil.models.online_kmeans",
    "kveil.models.public_rows", "kveil.stream.flow", "kveil.release.answers",
}  # fmt: skip


class Facts(NamedTuple):
    """What a module says, as far as the rules below ask."""

    words: set[str]  # names, attributes, functions, and texts such as getattr takes
    imports: set[str]  # modules, and "module.name" for what is imported from one
    names: dict[str, str]  # what names stand for, by imports and plain assignments, wherever they are
    classes: dict[str, list[str]]  # with their bases, as they are written
    makes_classes: bool  # by a call, where no base is written
    lawless: bool  # opens a desk that adds no noise
    silenced: bool  # tells a checker to look away
    reaches: set[str]  # into other objects: see `reaching_in`


House = dict[str, Facts]


def facts(text: str) -> Facts:
    nodes = list(ast.walk(ast.parse(text)))
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes), "imports of the house are absolute"
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    fields = {ast.Name: "id", ast.Attribute: "attr", ast.FunctionDef: "name", ast.alias: "name"}
    words = {getattr(node, fields[type(node)]) for node in nodes if type(node) in fields}
    names, imports = imported(nodes)
    classes = {node.name: [*filter(None, map(dotted, node.bases))] for node in nodes if isinstance(node, ast.ClassDef)}
    calls = [(dotted(node.func) or "", len(node.args)) for node in nodes if isinstance(node, ast.Call)]
    makes = any((name == "type" and n > 1) or name.endswith(("new_class", "make_dataclass")) for name, n in calls)
    exact = [node for node in nodes if isinstance(node, ast.Call) and (dotted(node.func) or "").split(".")[-1] in DESKS]
    lawless = any(isinstance(each, ast.Constant) and each.value is None for node in exact for each in ast.walk(node))
    silenced = re.search(r"#.*\b(type: *ignore|noqa|ruff:)", text) is not None
    return Facts(words | texts, imports, names, classes, makes, lawless, silenced, reaching_in(nodes, texts | imports))


def imported(nodes: list[ast.AST]) -> tuple[dict[str, str], set[str]]:
    names, imports = {}, set()
    for node in nodes:
        if isinstance(node, ast.Assign) and (value := dotted(node.value)):
            names |= {target.id: value for target in node.targets if isinstance(target, ast.Name) and target.id != value}
    for node in nodes:
        if isinstance(node, ast.Import):
            imports |= {each.name for each in node.names}
            names |= {each.asname: each.name for each in node.names if each.asname}
            names |= {first: first for each in node.names if not each.asname and (first := each.name.split(".")[0])}
        elif isinstance(node, ast.ImportFrom):
            imports |= {f"{node.module}.{each.name}" for each in node.names}
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return names, imports


def dotted(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    return f"{owner}.{node.attr}" if isinstance(node, ast.Attribute) and (owner := dotted(node.value)) else None


def reaching_in(nodes: list[ast.AST], texts: set[str]) -> set[str]:
    """What a method would use to reach into another object: texts and imports of private names, a look at all members, and
    changes of somebody else's members (a question whose `raw` is replaced would hand its rows over)."""
    found = {text for text in texts if re.fullmatch(r"_\w+|(\w+\.)+_[a-z]\w*|(.*\.)?(gc|inspect|ctypes|importlib)(\..*)?", text)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in ("vars", "setattr", "delattr", "globals", "exec", "eval", "__import__"):
            found.add(node.id)
        if isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__setattr__", "__getattribute__", "__class__"):
            found.add(node.attr)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) and dotted(node.value) != "self":
            found.add(f"{dotted(node)} =")
    return found


@cache
def house() -> House:
    """Every module of kveil, by name."""
    paths = {path.relative_to(HOUSE.parent).with_suffix("").parts: path for path in HOUSE.rglob("*.py")}
    return {
        ".".join(parts[:-1] if parts[-1] == "__init__" else parts): facts(path.read_text(encoding="utf-8"))
        for parts, path in paths.items()
    }


def with_snippet(module: str, text: str) -> House:
    return {**house(), module: facts(text)}


def room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def rooms(names: Iterable[str]) -> set[str]:
    return set(map(room, names))


def naming(modules: House, word: str) -> set[str]:
    return {name for name, known in modules.items() if word in known.words}


def resolved(modules: House, module: str, name: str, depth: int = 0) -> str:
    """The full name of what `name` stands for in a module, through imports, aliases and rooms that hand a name on."""
    first, _, rest = name.partition(".")
    known = modules[module].names
    if first not in known or depth > 20:
        return f"{module}.{name}"
    target = ".".join(filter(None, (known[first], rest)))
    for dots in range(target.count("."), 0, -1):
        parts = target.split(".")
        owner = ".".join(parts[:dots])
        if owner in modules:
            return resolved(modules, owner, ".".join(parts[dots:]), depth + 1)
    return target if known[first].partition(".")[0] not in known else resolved(modules, module, target, depth + 1)


def bases(modules: House) -> dict[str, set[str]]:
    """The full names of the bases of every class."""
    return {
        f"{module}.{name}": {resolved(modules, module, base) for base in written}
        for module, known in modules.items() for name, written in known.classes.items()
    }  # fmt: skip


def heirs(modules: House, of: str) -> set[str]:
    """Classes that inherit from one, directly or not."""
    above, found = bases(modules), {of}
    while more := {name for name, own in above.items() if own & found} - found:
        found |= more
    return found - {of}


# The rules, each with a snippet that breaks it.


def rows_are_read_by(modules: House) -> set[str]:
    return rooms(naming(modules, "map_reduce") | naming(modules, "read_rows"))


def test_only_desks_and_sources_read_rows():
    assert rows_are_read_by(house()) == {"kveil.desk", "kveil.source"}


@pytest.mark.parametrize("text", [
    "def run(desk):\n    return desk.source.map_reduce(count, None)",
    "read = getattr(source, 'map_reduce')",
    "from kveil.desk.base import read_rows",
    "from kveil.desk import base\nfound = base.read_rows(source, domain, question)",
])  # fmt: skip
def test_a_method_that_reads_rows_is_found(text):
    assert "kveil.methods" in rows_are_read_by(with_snippet("kveil.methods.sly", text))


def test_rows_themselves_are_for_whoever_holds_them():
    assert {module for module in naming(house(), "raw_blocks") if room(module) != "kveil.source"} == LOOKS_AT_ROWS
    assert "kveil.methods" not in rooms(LOOKS_AT_ROWS)


def test_another_look_at_rows_is_found():
    sly = with_snippet("kveil.models.sly", "def count(source):\n    return sum(map(len, source.raw_blocks()))")
    assert "kveil.models.sly" in naming(sly, "raw_blocks") - LOOKS_AT_ROWS


@pytest.mark.parametrize(("base", "home"), [(QUESTION, "kveil.questions"), (MECHANISM, "kveil.desk")])
def test_whoever_is_handed_rows_is_written_in_one_room(base, home):
    found = heirs(house(), base)
    assert len(found) >= 5
    assert rooms(found) == {home}


@pytest.mark.parametrize("text", [
    "from kveil.questions.base import Question\nclass Keep(Question): ...",
    "from kveil.questions.base import Question as Q\nclass Keep(Q): ...",
    "import kveil.questions.base\nclass Keep(kveil.questions.base.Question): ...",
    "from kveil.questions import base\nclass Keep(base.Question): ...",
    "from kveil.questions.cells import Whole\nclass Keep(Whole): ...",
    "from kveil.questions import cells as c\nclass Keep(c.RowCount): ...",
    "from kveil.questions.base import Question\nBase = Question\nclass Keep(Base): ...",
    "def run():\n    from kveil.questions.cells import Whole\n    class Keep(Whole): ...",
    "from kveil.methods.steps import Lengths\nclass Keep(Lengths): ...",  # handed on by another method
    "from kveil.questions.cells import Whole\nclass Own(Whole): ...\nclass Keep(Own): ...",
])  # fmt: skip
def test_a_question_in_a_method_is_found(text):
    assert "kveil.methods.sly.Keep" in heirs(with_snippet("kveil.methods.sly", text), QUESTION)


@pytest.mark.parametrize("text", [
    "from kveil.desk.base import Mechanism\nclass Take(Mechanism): ...",
    "from kveil.desk.walk import Walk\nclass Take(Walk): ...",
])  # fmt: skip
def test_a_mechanism_in_a_method_is_found(text):
    assert "kveil.methods.sly.Take" in heirs(with_snippet("kveil.methods.sly", text), MECHANISM)


def foreign_heirs(modules: House) -> set[str]:
    """Classes of methods that inherit from what other rooms of the house have written. A frame, a cell or a centre is handed rows
    by the question it is in, so one that is written in a method would see them."""
    return {
        name for name, own in bases(modules).items()
        if room(name) == "kveil.methods" and any(base.startswith("kveil.") and room(base) != "kveil.methods" for base in own)
    }  # fmt: skip


def test_methods_inherit_from_methods_alone():
    assert foreign_heirs(house()) == set()


@pytest.mark.parametrize("text", [
    "from kveil.questions.frame import Frame\nclass Own(Frame):\n    def centred(self, rows): ...",
    "from kveil.partition.midpoints import Midpoints\nclass Own(Midpoints): ...",
    "from kveil.desk.base import Held\nclass Own(Held): ...",
])  # fmt: skip
def test_a_frame_in_a_method_is_found(text):
    assert foreign_heirs(with_snippet("kveil.methods.sly", text)) == {"kveil.methods.sly.Own"}


def test_classes_are_written_and_not_made():
    assert not [name for name, known in house().items() if known.makes_classes]


@pytest.mark.parametrize("text", [
    "Keep = type('Keep', (Question,), {'raw': keep})",
    "import types\nKeep = types.new_class('Keep', (Question,))",
    "from dataclasses import make_dataclass\nKeep = make_dataclass('Keep', [], bases=(Question,))",
])  # fmt: skip
def test_a_class_that_is_made_is_found(text):
    assert facts(text).makes_classes


def test_methods_reach_into_no_other_object():
    methods = {name: known.reaches for name, known in house().items() if room(name) == "kveil.methods"}
    assert len(methods) >= 20
    assert {name: reaches for name, reaches in methods.items() if reaches} == {}


@pytest.mark.parametrize("text", [
    "rows = getattr(desk, '_source')",
    "from operator import attrgetter\nrows = attrgetter('_arrays')(held)",
    "rows = vars(held)",
    "rows = held.__dict__",
    "question = RowCount()\nquestion.raw = keep",
    "Whole.raw = keep",
    "setattr(Whole, 'raw', keep)",
    "object.__setattr__(question, 'frame', own)",
    "from kveil.questions import _kernels",
    "from kveil.desk.walk import _secret",
    "import gc",
    "def keep(held):\n    held.__class__ = Own",
])  # fmt: skip
def test_a_method_that_reaches_in_is_found(text):
    assert facts(text).reaches


def test_no_checker_is_told_to_look_away_from_a_method():
    """What only looks like a frame would be handed rows by the question it is in: types are what refuses it."""
    assert not [name for name, known in house().items() if room(name) == "kveil.methods" and known.silenced]


@pytest.mark.parametrize("text", ["desk.ask(Whole(spy), 0.1)  # type: ignore[arg-type]", "rows = desk._source  # noqa: SLF001"])
def test_a_checker_that_looks_away_is_found(text):
    assert facts(text).silenced


def test_exact_answers_are_for_whoever_promises_nothing():
    """Methods at epsilon = infinity, which then have no plan, and a fit without a plan no guarantee; and the protocol "dk"."""
    assert {name for name, known in house().items() if known.lawless} == EXACT


@pytest.mark.parametrize("text", [
    "found = Fixed(None, ()).open(source, octaves, None).draw(question)",
    "desk = fixed.FixedDesk(source, domain, None, None)",
    "pool = Pool(None, delta, relation, unit, is_pure=True)",
    "pool = Pool(epsilon=None, delta=delta)",
])  # fmt: skip
def test_a_desk_that_is_opened_without_a_law_is_found(text):
    assert facts(text).lawless


def importing(modules: House, wanted: Iterable[str]) -> set[str]:
    return {
        name
        for name, known in modules.items()
        if any(f"{what}.".startswith(f"{each}.") for what in known.imports for each in wanted)
    }


def test_noise_is_drawn_by_desks():
    """And by a device, for its own report; `kveil.testing` puts a script in the place of entropy; an audit stands at the gate."""
    others = {name for name in importing(house(), NOISE) if room(name) not in ("kveil.desk", "kveil.kernel")}
    assert others == {"kveil.collect.device", "kveil.testing", "kveil.auditing.watching"}
    assert rooms(importing(house(), ["kveil.testing"])) == {"kveil.auditing"}, "a script is for tests and audits"


@pytest.mark.parametrize(
    "text", ["from kveil.kernel import gate", "import kveil.kernel.noise as n", "from kveil.kernel.choice import select"]
)
def test_noise_in_a_method_is_found(text):
    assert "kveil.methods.sly" in importing(with_snippet("kveil.methods.sly", text), NOISE)


def test_methods_import_no_source():
    assert "kveil.methods" not in rooms(importing(house(), ["kveil.source"]))
    assert "kveil.methods.sly" in importing(
        with_snippet("kveil.methods.sly", "from kveil.source.local import read"), ["kveil.source"]
    )
