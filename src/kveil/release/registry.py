"""A release as a record of the registry of differential privacy deployments; what nobody stated is blank.

Fields and words are those of schemas/deployments-schema.yaml in github.com/opendp/deployments-registry-data, at commit
057e5d81cf60150dd3307e0cf4504b957802fb3b. The registry is reviewed by people, who fill in what a program cannot know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kveil._version import __version__
from kveil.release.odds import in_words

if TYPE_CHECKING:
    from kveil.release.release import Release

MODELS = {"curator": "Central", "stream": "Central", "federation": "Federated", "local": "Local"}
BLANK = ""


def deployment(release: Release) -> dict[str, Any]:
    """The record, ready for `json.dumps`. `number_of_privacy_units` is always blank: the number of records is private."""
    promise = release.guarantee
    holds = promise.route != "none" and promise.valid
    return {
        "url_slug": BLANK,
        "deployment": {
            "basic": {
                "name": f"Cluster centres of {release.data_name}" if release.data_name else BLANK,
                "data_curators": [{"data_curator_name": BLANK, "data_curator_type": BLANK}],
                "description": _description(release),
                "intended_use": release.purpose,
                "data_product_type": "Summary statistics",
                "data_product_region": BLANK,
                "data_product_sector": BLANK,
                "publication_date": release.created,
            },
            "dp_variant": {
                "variant_name": ("Approximate DP" if promise.delta else "Pure DP") if holds else BLANK,
                "data_domain": BLANK,
                "unprotected_quantities": "names and types of columns, and the parameters of the fit",
            },
            "privacy_loss": {
                "privacy_unit": str(promise.unit) if holds else BLANK,
                "privacy_unit_details": f"neighbouring tables: {promise.relation} {promise.unit}" if holds else BLANK,
                "number_of_privacy_units": None,
                "privacy_parameters": _parameters(release) if holds else {},
                "privacy_parameters_details": in_words(promise),
            },
            "deployment_model": {
                "model_name": MODELS[promise.trust],
                "model_name_details": BLANK,
                "trust_assumptions": "\n".join(f"- {text}" for text in promise.assumptions),
                "actors": BLANK,
                "release_type": BLANK,
                "release_type_details": BLANK,
                "data_source_type": BLANK,
                "data_source_type_details": BLANK,
                "access_type": "Non-interactive",
                "access_type_details": BLANK,
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": BLANK,
                "mechanisms": _mechanisms(release),
                "composition": f"added up by the {promise.route} route" if holds else BLANK,
                "post_processing": BLANK,
                "justification": BLANK,
                "utility": str(release.verdict()),
                "additional_information": BLANK,
            },
            "administrative": {"evidence_sources": {}, "status": "Draft", "registry_authors": [BLANK], "tier": None},
        },
    }


def _description(release: Release) -> str:
    where = "points of a public universe" if release.n_features is None else f"points with {release.n_features} features"
    return f"{len(release.centers)} cluster centres, {where}, by {release.kind}"


def _parameters(release: Release) -> dict[str, float]:
    delta = release.guarantee.delta
    return {"epsilon": release.guarantee.epsilon, **({"delta": delta} if delta else {})}


def _mechanisms(release: Release) -> str:
    """What was drawn, and by which program."""
    draws = release.guarantee.draws or release.guarantee.charges
    return "\n".join([*(f"- {draw}" for draw in draws), f"kveil {__version__}, method {release.method['used']}"])
