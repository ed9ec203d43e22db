"""Docstrings of public names have the sections of numpydoc, so that editors and the reference show parameters."""

import inspect
import re
from dataclasses import fields, is_dataclass

import pytest

import kveil

NAMES = [name for name in kveil.__all__ if name != "__version__"]
RETURNED = {  # shown by the examples of what returns them
    "CandidateSet": "private_candidates", "Comparison": "compare", "CuratorPlan": "plan", "Evaluation": "evaluate",
    "Source": "read", "Themes": "describe",
}  # fmt: skip


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^(\w+)\n-+\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def listed(section: str) -> list[str]:
    return [name for line in re.findall(r"^(\*{0,2}\w+(?:, \w+)*) : ", section, flags=re.M) for name in line.split(", ")]


def parameters(thing: object) -> list[str]:
    """What a caller may pass."""
    try:
        return [name for name in inspect.signature(thing).parameters if name not in ("self", "args", "kwargs")]
    except ValueError:  # a class of another making
        return []


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_or_attribute_is_listed(name):
    thing = getattr(kveil, name)
    found = sections(inspect.getdoc(thing))
    if inspect.isfunction(thing) or "Parameters" in found:
        assert sorted(listed(found["Parameters"])) == sorted(parameters(thing))
        return
    public = {field.name for field in fields(thing) if not field.name.startswith("_")} if is_dataclass(thing) else set()
    assert public <= set(listed(found["Attributes"]))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_an_example(name):
    text = inspect.getdoc(getattr(kveil, RETURNED.get(name, name)))
    assert ">>> " in sections(text)["Examples"]


@pytest.mark.parametrize("name", NAMES)
def test_parameters_that_share_a_line_have_one_default(name):
    """The reference shows the first one's default beside all of them."""
    thing = getattr(kveil, name)
    shared = re.findall(r"^(\w+(?:, \w+)+) : ", sections(inspect.getdoc(thing)).get("Parameters", ""), flags=re.M)
    for names in shared:
        defaults = {repr(inspect.signature(thing).parameters[each].default) for each in names.split(", ")}
        assert len(defaults) == 1, names


def methods(thing: type) -> dict[str, object]:
    """Public ones, also of classes above it in kveil."""
    found = {name: getattr(thing, name) for name in dir(thing) if not name.startswith("_")}
    return {
        name: each for name, each in found.items() if inspect.isroutine(each) and "kveil" in str(getattr(each, "__module__", ""))
    }


ANSWERS = {"predict", "fit_predict", "transform", "score"}  # about rows: who calls them wants to know what comes back
FOR_SPACES = {"claim", "distances", "reach"}  # for whoever writes a universe
FOR_LEDGERS = {"reserve", "note"}  # for models, which reserve
FOR_SOURCES = {"map_reduce"}


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isclass(getattr(kveil, name))])
def test_a_method_that_takes_several_things_lists_them(name):
    inner = FOR_SPACES | FOR_LEDGERS | FOR_SOURCES
    for called, method in methods(getattr(kveil, name)).items():
        takes = [each for each in parameters(method) if each not in ("cls", "options", "unknown")]
        if (len(takes) > 1 and called not in inner) or called in ANSWERS:
            found = sections(inspect.getdoc(method))
            assert sorted(listed(found.get("Parameters", ""))) == sorted(takes), called


@pytest.mark.parametrize("name", [name for name in NAMES if ANSWERS & set(dir(getattr(kveil, name)))])
def test_an_answer_about_rows_says_what_it_is(name):
    for called in sorted(ANSWERS & set(dir(getattr(kveil, name)))):
        text = inspect.getdoc(getattr(getattr(kveil, name), called))
        assert "Returns" in sections(text) or text.startswith("Refused"), called
