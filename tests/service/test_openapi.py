"""The API keeps what its description promises: schemathesis sends what the description allows, and what it does not.

The searches that are asked for are a finished one. What is generated depends on the description alone, so a failure
happens again. The check that valid data is accepted is left out: the description cannot say which letters a protein
has, nor which options fit each other.
"""

import re
import subprocess
import sys

import pytest

from tests.service.servers import RunningServer

pytestmark = pytest.mark.thorough

CONFIGURATION = """
[generation]
deterministic = true

[parameters]
"path.key" = "{key}"
"path.number" = 0

[checks]
positive_data_acceptance.enabled = false
"""


def test_the_api_keeps_what_its_description_promises(tmp_path, databases, queries):
    limits = ["--limit", "failures_per_minute=100000"]  # the checks send hundreds of tokens that are not valid
    with RunningServer(tmp_path, [databases / "proteins.db"], *limits, owners=["ann"]) as running:
        client = running.client("ann")
        key = client.wait(client.submit(queries, "proteins.db", {"top": 2})["id"])["id"]
        (tmp_path / "schemathesis.toml").write_text(CONFIGURATION.format(key=key))
        description = running.request("/api/v1/openapi.json", owner="ann").json()
        assert set(description["components"]["securitySchemes"]) == {"bearer", "key", "basic"}
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(tmp_path / "schemathesis.toml")]
        command += ["run", f"{running.url}/api/v1/openapi.json", "-H", f"Authorization: Bearer {running.tokens['ann']}"]
        command += ["--max-examples", "5", "--continue-on-failure", "--no-color"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        n_operations = sum(len(methods) for methods in description["paths"].values())
        assert re.search(rf"Tested: +{n_operations}\n", done.stdout), done.stdout
        generated, passed = re.search(r"(\d+) generated, (\d+) passed", done.stdout).groups()
        assert int(generated) == int(passed) >= 300
        assert running.events("error") == []
