"""The figures of the HST paper at full size: `python -m benchmarks.hst_figures [-o OUT] [--points 4000] [--runs 10] ...`

All options are those of `kveil reproduce hst-figures`; images are MNIST of ../shared/data unless --data names others.
"""

import sys

from benchmarks.sets import SHARED
from kveil.cli.main import main as kveil


def main() -> None:
    given, images = sys.argv[1:], SHARED / "mnist.npz"
    if "--data" not in given and images.exists():
        given = ["--data", str(images), *given]
    sys.argv[1:] = ["reproduce", "hst-figures", *given]
    kveil()


if __name__ == "__main__":
    main()
