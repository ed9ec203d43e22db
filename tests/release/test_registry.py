"""A record for the registry of deployments: its fields and words, blanks for what nobody stated, and never a number of rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kveil.kernel.loss import PrivacyUnit
from kveil.release.odds import in_words

# schemas/deployments-schema.yaml of opendp/deployments-registry-data, at the commit that kveil.release.registry names
SHAPE = {
    "basic": ["name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
              "data_product_sector", "publication_date"],
    "dp_variant": ["variant_name", "data_domain", "unprotected_quantities"],
    "privacy_loss": ["privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters",
                     "privacy_parameters_details"],
    "deployment_model": ["model_name", "model_name_details", "trust_assumptions", "actors", "release_type",
                         "release_type_details", "data_source_type",
                         "data_source_type_details", "access_type", "access_type_details"],
    "implementation": ["preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing", "justification",
                       "utility", "additional_information"],
    "administrative": ["evidence_sources", "status", "registry_authors", "tier"],
}  # fmt: skip
WORDS = {
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom", ""},
    ("deployment_model", "model_name"): {"Local", "Central", "Shuffle", "Federated", "Varies"},
    ("deployment_model", "access_type"): {"Interactive", "Non-interactive"},
    ("basic", "data_product_type"): {"Summary statistics", "Machine learning model", "Dataset", "Synthetic data"},
}


@pytest.mark.parametrize("trust", ["curator", "stream", "federation", "local"])
def test_a_record_has_the_shape_of_the_registry(make, trust):
    release = make()
    record = replace(release, guarantee=replace(release.guarantee, trust=trust)).deployment()
    assert list(record) == ["url_slug", "deployment"]
    assert {part: list(fields) for part, fields in record["deployment"].items()} == SHAPE
    for (part, name), words in WORDS.items():
        assert record["deployment"][part][name] in words
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_what_is_known_is_filled_in_and_the_rest_is_blank(make):
    release = make(purpose="beds per ward", data_name="admissions", created="2026-03-01")
    told = release.deployment()["deployment"]
    assert told["basic"]["name"] == "Cluster centres of admissions"
    assert told["basic"]["intended_use"] == "beds per ward"
    assert told["basic"]["publication_date"] == "2026-03-01"
    assert told["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}
    assert told["privacy_loss"]["privacy_parameters_details"] == in_words(release.guarantee)
    assert told["privacy_loss"]["number_of_privacy_units"] is None
    assert "discrete-laplace" in told["implementation"]["mechanisms"]
    blank = make().deployment()["deployment"]["basic"]
    assert blank["name"] == blank["intended_use"] == blank["data_product_region"] == ""


def test_delta_and_people_are_named(make):
    release = make()
    promise = replace(release.guarantee, delta=1e-6, route="zcdp", unit=PrivacyUnit("person", 3, "id"))
    told = replace(release, guarantee=promise).deployment()["deployment"]
    assert told["dp_variant"]["variant_name"] == "Approximate DP"
    assert told["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5, "delta": 1e-6}
    assert told["privacy_loss"]["privacy_unit"] == 'one person by "id" with at most 3 records'


@pytest.mark.parametrize("name", ["none", "invalid"])
def test_a_promise_that_does_not_hold_is_left_blank(make, request, name):
    loss = make(guarantee=request.getfixturevalue(name)).deployment()["deployment"]["privacy_loss"]
    assert (loss["privacy_unit"], loss["privacy_parameters"], loss["privacy_parameters_details"]) == ("", {}, "")
