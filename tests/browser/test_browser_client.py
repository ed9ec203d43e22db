"""The browser's client in Node, against the same vectors as Python, and as a package."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import mutate
import pytest

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "src" / "kveil" / "service" / "static"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing, in which the browser's client is run")


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@needs_node
@pytest.mark.parametrize("name", ["vectors", "client"])
def test_in_node(name):
    told = run("node", "--test", HERE / f"{name}.test.mjs")
    assert "# fail 0" in told
    assert "# pass 0" not in told


@needs_node
def test_random_changes_of_manifests_get_the_same_verdict():
    """The core of `python tests/browser/mutate.py 10000`; another seed every time would hide what was found."""
    chains = mutate.mutations(250, seed=1)
    ours = [mutate.in_python(chain) for chain in chains]
    assert ours == mutate.in_node(chains)
    assert min(ours.count("taken"), ours.count("refused")) >= 15


@needs_node
@pytest.mark.research
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed, by which the package is packed")
def test_the_package_is_packed_installed_and_imported(tmp_path):
    quiet = {**os.environ, "npm_config_update_notifier": "false", "npm_config_cache": str(tmp_path / "cache")}
    (packed,) = json.loads(run("npm", "pack", "--json", STATIC / "client", cwd=tmp_path, env=quiet))
    assert {"index.js", "client.js", "package.json"} <= {file["path"] for file in packed["files"]}
    assert packed["size"] < 40_000
    app = tmp_path / "app"
    app.mkdir()
    (app / "package.json").write_text('{"type": "module"}')
    run("npm", "install", "--offline", "--no-audit", "--no-fund", tmp_path / packed["filename"], cwd=app, env=quiet)
    script = 'import { LocalClient, Refused } from "kveil-client"; console.log(typeof LocalClient, new Refused("x", "").why);'
    assert run("node", "--input-type=module", "-e", script, cwd=app) == "function x\n"


@pytest.fixture
def tsc(tmp_path):
    """The compiler that checks types: one that is installed, or one that npm fetches into a folder of this test."""
    if found := shutil.which("tsc"):
        return found
    if shutil.which("npm") is None:
        pytest.skip("neither tsc nor npm is installed; one of them is needed to check the types of the browser's client")
    command = ["npm", "install", "--prefix", tmp_path, "--no-audit", "--no-fund", "typescript@5"]
    quiet = {**os.environ, "npm_config_update_notifier": "false", "npm_config_cache": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet)
    if done.returncode:
        pytest.skip("npm could not fetch typescript, which checks the types of the browser's client")
    return str(tmp_path / "node_modules" / ".bin" / "tsc")


@pytest.mark.research
def test_types_are_right(tsc, tmp_path):
    files = [*STATIC.rglob("*.js")]
    options = ["--allowJs", "--checkJs", "--strict", "--noEmit", "--target", "es2022", "--module", "es2022"]
    checked = [tsc, *options, "--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable"]
    run(*checked, *files)
    wrong = tmp_path / "wrong.js"
    wrong.write_text("/** @type {number} */\nexport const n = 'text';\n")
    assert subprocess.run([*checked, wrong], capture_output=True).returncode, "and a mistake would be seen"
