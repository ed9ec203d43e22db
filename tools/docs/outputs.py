"""`make docs-outputs`: run every page and write what its blocks print below them. Arguments are pages; none means all."""

import sys
from pathlib import Path

from tools.docs.blocks import blocks_of, pages
from tools.docs.running import rewrite

if __name__ == "__main__":
    for page in [Path(name) for name in sys.argv[1:]] or pages():
        if blocks_of(page.read_text(encoding="utf-8")):
            print(f"{page.name}: {'written' if rewrite(page) else 'unchanged'}", flush=True)
