import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil import canonical
from kveil.errors import InvalidValue

plain = st.recursive(
    st.booleans() | st.integers(-canonical.LARGEST, canonical.LARGEST) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(plain)
def test_every_value_has_one_text_and_every_text_one_value(value):
    text = canonical.DEVICE.write(value)
    assert canonical.DEVICE.read(text) == value
    assert canonical.DEVICE.write(canonical.DEVICE.read(text)) == text


@pytest.mark.parametrize(
    "value", [1.0, float("nan"), None, 2**53, -(2**53), {1: 2}, b"x", {"a": [0.5]}, {"a": {"b": None}}], ids=repr
)
def test_what_languages_write_differently_is_not_written(value):
    with pytest.raises(InvalidValue):
        canonical.DEVICE.write(value)


def test_depth_is_limited():
    nested = []
    for _ in range(40):
        nested = [nested]
    with pytest.raises(InvalidValue, match="deep"):
        canonical.DEVICE.write(nested)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b'{"a": 1}', b'{"b":1,"a":2}', b'{"a":1,"a":1}', b'{"a":1.0}', b'{"a":1e3}', b"NaN", b"[Infinity]", b"null",
        b"-0", b'"\\u0041"', '"é"'.encode(), b"\xff", b"[" * 100_000, b"1" * 5000, b'{"a":1}\n', b"9007199254740992",
    ],
    ids=lambda text: repr(text[:20]),
)  # fmt: skip
def test_other_texts_of_a_value_are_refused(text):
    with pytest.raises(InvalidValue):
        canonical.DEVICE.read(text)


def test_a_text_of_millions_of_tiny_values_is_refused_unread():
    """16 MB of empty lists would take half a gigabyte, before any signature is looked at."""
    most = canonical.DEVICE.most_entries
    for entry in (b"[]", b"{}", b'""', b"0"):
        with pytest.raises(InvalidValue, match="entries"):
            canonical.DEVICE.read(b"[" + (entry + b",") * most + entry + b"]")
    assert len(canonical.DEVICE.read(b"[" + b"0," * (most - 1) + b"0]")) == most


def test_oversized_and_non_bytes_are_refused_unread():
    for text in (b" " * (canonical.DEVICE.most_bytes + 1), "{}", None, 5):
        with pytest.raises(InvalidValue):
            canonical.DEVICE.read(text)
