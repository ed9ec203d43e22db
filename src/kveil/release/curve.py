"""What every number of clusters would cost, from a release alone, and which number its cells suggest."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kveil import _pictures
from kveil._pages import Preformatted
from kveil.arrays import Floats, Integers
from kveil.kernel.loss import Guarantee
from kveil.release.kept import generator, kept
from kveil.solve.choosing import check_range, choice, curve, most_clusters
from kveil.solve.cloud import cloud

if TYPE_CHECKING:
    from kveil.release.release import Release

DEFAULT_RANGE = (1, 30)


@dataclass(frozen=True, eq=False)
class CostCurve(Preformatted):
    """Estimates for several numbers of clusters, from released values alone: good for a shape, not as a result.

    k: (m,) numbers of clusters, ascending; fewer than were asked for where the cells of the release show fewer.
    cost: (m,) the estimated mean squared distance of a row to its centre, in the squared distance of the model. Rows that noise
        hides are left out, so it is too low. None where the release saw a projection of many columns, which tells how many
        clusters there are and not what they cost.
    silhouette: (m,) how much nearer rows are to their own centre than to the next one, between 0 and 1; 0 for one cluster.
    told_apart: (m,) how many of the k centres lie at least 3 standard errors from the nearest other one.
    suggested: the number of clusters that `n_clusters="auto"` would choose from this range.
    is_clear: whether two ways to choose agree on it, away from the ends. Otherwise it is a guess, and `why` says so.
    guarantee: that of the release, which covers all of this.
    """

    k: Integers
    cost: Floats | None
    silhouette: Floats
    told_apart: Integers
    suggested: int
    is_clear: bool
    why: str
    guarantee: Guarantee

    def save(self, path: str | PathLike[str]) -> Path:
        """Draw the curve into an SVG or PNG file, by its suffix. Needs matplotlib: pip install "kveil[report]"."""
        return _pictures.save("kveil.release.curve_figure", self, Path(path))

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain lists, for JSON."""
        return {
            "k": self.k.tolist(),
            "cost": None if self.cost is None else self.cost.tolist(),
            "silhouette": self.silhouette.tolist(),
            "told_apart": self.told_apart.tolist(),
            "suggested": self.suggested,
            "is_clear": self.is_clear,
            "why": self.why,
        }

    def __str__(self) -> str:
        lines = ["   k        cost  silhouette  told apart"]
        for place, k in enumerate(self.k):
            cost = "          -" if self.cost is None else f"{self.cost[place]:11.4g}"
            mark = "  <- suggested" if k == self.suggested else ""
            lines.append(f"{k:4d} {cost}  {self.silhouette[place]:10.3f}  {self.told_apart[place]:10d}{mark}")
        return "\n".join([*lines, f"{self.why}."])


def cost_curve(release: Release, k_range: tuple[int, int] | None = None, random_state: Any = None) -> CostCurve:
    """`Release.cost_curve`."""
    shown = kept(release, "cost_curve")
    low, high = check_range(k_range or release.parameters.get("k_range") or DEFAULT_RANGE, least=1)
    points = cloud(shown.synopsis, shown.unit)
    found = curve(points, most_clusters(points, high), generator(random_state))
    chosen = choice(found, points, max(low, 2))
    asked, is_projected = slice(low - 1, None), shown.synopsis.projected is not None
    return CostCurve(
        found.k[asked], None if is_projected else found.cost[asked], found.silhouette[asked], found.told_apart[asked],
        chosen.k, chosen.is_clear, chosen.why, release.guarantee,
    )  # fmt: skip
