"""The example files for operating the service are valid and do what they say; the pages name tests that are there.

nginx is started with the example's configuration, whose addresses, ports and certificate are replaced by the test's.
"""

import contextlib
import http.client
import json
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from swsearch.cli.app import commands
from swsearch.service.settings import ServerLimits
from tests.patience import LIMIT_SECONDS, wait_until
from tests.processes import free_port
from tests.service.servers import RunningServer, ask

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "service"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def serve_options(command):
    """Parse a command line of `swsearch serve` as the program does, without running it."""
    program = commands().commands["serve"]
    return program.make_context("serve", shlex.split(command.replace("\\\n", " ")), resilient_parsing=False).params


# --- systemd ---


@pytest.mark.peer("systemd-analyze")
def test_the_unit_is_valid(tmp_path):
    text = (EXAMPLES / "swsearch.service").read_text()
    unit = tmp_path / "swsearch.service"
    unit.write_text(text.replace("/opt/swsearch/bin/swsearch", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, found) == (0, [])


def test_the_units_command_is_one_of_the_program():
    (command,) = re.findall(r"^ExecStart=\S+/swsearch serve (.*)$", (EXAMPLES / "swsearch.service").read_text(), re.M)
    options = serve_options(command)
    assert list(options["trusted_proxy"]) == ["127.0.0.1"]
    assert len(options["paths"]) == 2


# --- container ---


def test_the_image_starts_the_service_and_checks_its_health(server):
    """Its last stage: the command on the page about operation, and its check of health against a server."""
    stage = (ROOT / "Dockerfile").read_text().partition("AS service\n")[2].replace("\\\n", " ")
    steps = dict(line.split(maxsplit=1) for line in stage.splitlines())
    assert json.loads(steps["ENTRYPOINT"])[0] in PROJECT["scripts"]
    assert json.loads(steps["CMD"])[0] in commands().commands
    page = (ROOT / "docs" / "service" / "operation.md").read_text()
    (command,) = re.findall(r"swsearch:service serve ((?:.*\\\n)*.*)", page)
    assert serve_options(command)["host"] == "0.0.0.0"
    assert f"SWSEARCH_STORE={json.loads(steps['VOLUME'])[0]}/" in steps["ENV"]
    check = json.loads(steps["HEALTHCHECK"].partition("CMD ")[2])
    code = check[-1].replace("http://127.0.0.1:8765", server.url)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    gone = check[-1].replace("8765", str(free_port()))
    assert subprocess.run([sys.executable, "-c", gone], check=False, capture_output=True).returncode != 0


# --- proxies ---


@contextlib.contextmanager
def nginx(folder, service, root_path=""):
    """Run nginx with the example before a service; gives the port of TLS and the log of requests."""
    text = (EXAMPLES / "nginx.conf").read_text().replace("location / {", f"location {root_path}/ {{")
    names = ["-keyout", "key.pem", "-out", "certificate.pem", "-subj", "/CN=localhost"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names]
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    plain, port = free_port(), free_port()
    replaced = {
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "search.example.org;": "localhost;",
        "/etc/ssl/certs/search.example.org.pem": f"{folder}/certificate.pem",
        "/etc/ssl/private/search.example.org.key": f"{folder}/key.pem",
        "/var/log/nginx/swsearch.log": f"{folder}/access.log",
        "127.0.0.1:8765": urlsplit(service.url).netloc,
    }
    for old, new in replaced.items():
        assert old in text, old
        text = text.replace(old, new)
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"pid {folder}/nginx.pid; error_log {folder}/error.log; daemon off; master_process off; events {{}}\n"
    (folder / "nginx.conf").write_text(f"{head}http {{ {paths}\n{text}\n}}\n")
    command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    tried = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: is_open(port) or process.poll() is not None, "the start of nginx")
        yield port, folder / "access.log"
    finally:
        process.terminate()
        process.wait()


def is_open(port):
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def secure(port):
    """A connection to nginx."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection("localhost", port, timeout=LIMIT_SECONDS, context=context)


@pytest.mark.peer("nginx")
@pytest.mark.peer("openssl")
@pytest.mark.parametrize(("root", "cookie_name"), [("", "__Host-swsearch"), ("/swsearch", "__Secure-swsearch")])
def test_the_service_behind_nginx(tmp_path, databases, queries, root, cookie_name):
    """TLS, cookies, addresses of pages, events that are not held back, no name from a client, no secret in the log."""
    options = ["--no-worker", "--trusted-proxy", "127.0.0.1", "--sso-header", "X-Forwarded-User", "--root-path", root]
    proxy = tmp_path / "nginx"
    proxy.mkdir()
    with (
        RunningServer(tmp_path, [databases / "few.db"], *options, owners=["ann"]) as running,
        nginx(proxy, running, root) as (port, log),
    ):
        site, token = f"https://localhost:{port}", running.tokens["ann"]
        assert ask(secure(port), f"{root}/api/v1/usage", X_Forwarded_User="ann").status == 401
        form = urlencode({"token": token, "next": "/history"})
        sent = {"Origin": site, "Content_Type": "application/x-www-form-urlencoded"}
        status, headers, _ = ask(secure(port), f"{root}/sign-in", form, **sent)
        assert (status, headers["location"]) == (303, f"{root}/history")
        assert headers["set-cookie"].startswith(f"{cookie_name}=")
        assert headers["set-cookie"].endswith("SameSite=Strict; Secure")
        assert headers["strict-transport-security"] == "max-age=31536000"
        body = json.dumps({"queries": queries, "database": "few.db"})
        known = {"Authorization": f"Bearer {token}", "Content_Type": "application/json"}
        key = ask(secure(port), f"{root}/api/v1/searches", body, **known).json()["id"]
        cookie = {"Cookie": headers["set-cookie"].partition(";")[0], "Origin": site, "Accept": "text/html"}
        page = ask(secure(port), f"{root}/results/{key}/share", method="POST", **cookie).text
        (link,) = re.findall(rf"{site}({root}/results/share-[\w-]+)", page)
        # No worker takes the search, so its stream stays open; the first event comes all the same.
        for path in (f"{root}/api/v1/searches/{link.rpartition('/')[2]}/events", f"{link}/events"):
            connection = secure(port)
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.readline().startswith(b"event: ")
            connection.close()
        assert ask(secure(port), f"{root}/api/v1/searches/{key}/cancel", method="POST", **known).status == 200
        assert ask(secure(port), link).status == 200
    text = log.read_text()  # nginx has ended, so all lines are there
    assert f"GET {root}/results/share-... 200 " in text
    assert link.rpartition("/")[2] not in text
    assert token not in text


def test_the_caddyfile_is_valid(tmp_path):
    text = (EXAMPLES / "Caddyfile").read_text()
    if shutil.which("caddy") is not None:
        command = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(EXAMPLES / "Caddyfile")]
        assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 0
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    depth = 0
    for line in lines:
        depth += line.endswith("{") - (line == "}")
        assert depth >= 0
    assert depth == 0
    assert "header_up -X-Forwarded-User" in lines


# --- pages ---


def test_every_test_that_the_threat_model_names_is_there():
    """Source: docs/threat-model.md, and the files that it names."""
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| Measure", "| ---"))]
    measures = [row for row in rows if row.count("|") == 4]
    assert len(measures) > 20
    for row in measures:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, f"nothing tests this: {row}"
        for path, function in named:
            found = re.search(rf"^ *def {function}\(", (ROOT / path).read_text(encoding="utf-8"), re.M)
            assert found, f"{path}::{function} is not there"


def test_the_page_lists_every_limit_with_its_default():
    """Source: docs/service/use.md, and the settings."""
    page = (ROOT / "docs" / "service" / "use.md").read_text(encoding="utf-8")
    for name, default in vars(ServerLimits()).items():
        (shown,) = re.findall(rf"^\| `{name}` \|[^|]*\| ([^|]*) \|$", page, re.M)
        power = shown.replace("10¹⁶", str(10**16)).replace("10¹⁷", str(10**17))
        assert int(power.replace(",", "")) == default


def test_the_commands_of_the_operations_page_are_of_the_program():
    """Source: docs/service/operation.md; every command that it shows is parsed."""
    page = (ROOT / "docs" / "service" / "operation.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (?:.* )?(?:\S*/)?swsearch (serve|worker|tokens|runs) (.*)$", page, re.M)
    assert len(shown) >= 3
    program = commands()
    for name, rest in shown:
        words = shlex.split(rest, comments=True)
        command = program.commands[name]
        if hasattr(command, "commands"):
            command, words = command.commands[words[0]], words[1:]
        command.make_context(name, words)
