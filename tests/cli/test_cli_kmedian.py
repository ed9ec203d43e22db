"""`kveil fit --objective k-median`: the same door, the other objective."""

from __future__ import annotations

import numpy as np
import pytest

import kveil as library
from kveil import PrivateKMedian
from kveil.testing import scripted

ARGUMENTS = ("--k", 3, "--bounds", "0,10", "--random-state", 1, "--objective", "k-median")


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ((), {}),
        (("--method", "weiszfeld", "--n-steps", 3), {"method": "weiszfeld", "n_steps": 3}),
        (("--scaling", "bounds"), {"scaling": "bounds"}),
    ],
)
def test_the_command_line_and_the_library_give_the_same_release(kveil, csv, tmp_path, options, parameters):
    with scripted(5):
        outcome = kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS, *options)
    assert outcome.code == 0, outcome
    with scripted(5):
        model = PrivateKMedian(3, bounds=(0, 10), random_state=1, **parameters).fit(csv)
    release = library.load(tmp_path / "out")
    assert release.kind == "PrivateKMedian"
    np.testing.assert_array_equal(release.centers, model.cluster_centers_)
    assert release.guarantee == model.guarantee_
    assert release.parameters == model.release_.parameters


def test_methods_of_the_other_objective_are_refused(kveil, csv, tmp_path):
    outcome = kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS, "--method", "lloyd")
    assert outcome.code == 2
    assert "is not for --objective" in outcome.err
    assert not (tmp_path / "out").exists()
