"""Colours of pictures can be read on both grounds, and told apart without colour vision of one kind."""

import numpy as np
import pytest

from kveil.release.look import BLUE, DARK, LIGHT, ORANGE

pytest.importorskip("matplotlib")
from kveil.release.profile_figure import DIVERGING


def rgb(text):
    return np.array([int(text[place : place + 2], 16) / 255 for place in (1, 3, 5)])


def luminance(colour):
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("look", [LIGHT, DARK])
def test_text_has_the_contrast_that_wcag_asks_for(look):
    for colour in (look.ink, look.muted, look.mark, look.warn):
        assert contrast(rgb(colour), rgb(look.paper)) >= 4.5


@pytest.mark.parametrize("look", [LIGHT, DARK])
@pytest.mark.parametrize("place", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_numbers_can_be_read_on_every_colour_of_a_profile(look, place):
    *colour, alpha = DIVERGING(place)
    ground = alpha * np.array(colour) + (1 - alpha) * rgb(look.paper)
    assert contrast(rgb(look.ink), ground) >= 4.5


@pytest.mark.parametrize("missing", [[[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
                                     [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]])  # fmt: skip
def test_blue_and_orange_are_told_apart_without_red_or_green_cones(missing):
    """Machado, Oliveira and Fernandes (2009): protanopia and deuteranopia, applied to the colours as they are."""
    blue, orange = (np.clip(np.array(missing) @ rgb(colour), 0, 1) for colour in (BLUE, ORANGE))
    assert np.linalg.norm(blue - orange) > 0.5
