"""Write down which tests take longest, from pytest's XML, so that they are begun first: `make test-times`."""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

LONGEST = 40


def main(report: Path, place: Path) -> None:
    found: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        module, _, rest = case.attrib["classname"].partition(".Test")
        name = f"Test{rest}::{case.attrib['name']}" if rest else case.attrib["name"]
        found[f"{module.replace('.', '/')}.py::{name}"] = float(case.attrib["time"])
    longest = sorted(found.items(), key=lambda item: -item[1])[:LONGEST]
    place.write_text(json.dumps({name: round(seconds, 1) for name, seconds in longest}, indent=0) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
