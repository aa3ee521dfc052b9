"""Fixtures for tests of a client against `berth sandbox`: pytest and Python's standard library, nothing else.

    def test_a_lost_answer(sandbox):
        client = Client(*sandbox.provider("a"), sleep=sandbox.advance)
        sandbox.fault("answer-lost", route="POST /instances")
        client.create(...)
        sandbox.assert_journal("never_created_twice")

README.md describes the fixtures and the environment variables.
"""
import contextlib
import json
import os
import shlex
import subprocess
from datetime import datetime
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import pytest


@pytest.fixture(scope="session")
def sandbox_flags():
    """The flags of `berth sandbox`. A conftest.py may define this fixture with others."""
    return ["--providers", "a"]


@pytest.fixture(scope="session")
def sandbox_server(sandbox_flags):
    """The server of this process's sandboxes: the one of $BERTH_SANDBOX, or one that is started."""
    url = os.environ.get("BERTH_SANDBOX")
    if url:
        yield Server(url.rstrip("/") + "/control", os.environ["BERTH_CONTROL_KEY"])
    else:
        with start_server(sandbox_flags) as server:
            yield server


@pytest.fixture
def sandbox(sandbox_server):
    """A sandbox for this test only, with its own clock. All of it ends with the test."""
    with sandbox_server.for_test() as of_test:
        yield of_test


@contextlib.contextmanager
def start_server(flags):
    """Starts `berth sandbox`. It stops at the end of its standard input, which also ends if this process is killed."""
    command = [*shlex.split(os.environ.get("BERTH", "npx berth")), "sandbox"]
    command += ["--port", "0", "--json", "--stop-with-stdin", "--clock", "virtual", *flags]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        ready = next((line for line in process.stdout if line.startswith('{"origin":')), None)
        if ready is None:
            raise SandboxError(f"`{shlex.join(command)}` ended before it was ready")
        control = json.loads(ready)["control"]
        yield Server(control["base_url"], control["api_key"])


class SandboxError(Exception):
    """The sandbox did not start, or its control API refused a request."""


class Access(NamedTuple):
    base_url: str
    api_key: str


class Server:
    """A sandbox, by the URL and the key of its control API."""

    # Proxies of the environment are not for it.
    _opener = build_opener(ProxyHandler({}))

    def __init__(self, url, key):
        self.url, self.key = url, key

    def control(self, method, path, body=None):
        """Sends a request to the control API (described at /control/openapi.json), such as ("POST", "/clock/freeze")."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with self._opener.open(Request(self.url + path, data, headers, method=method)) as reply:
                return json.load(reply)
        except HTTPError as error:
            with error:
                message = json.load(error)["error"]["message"]
            raise SandboxError(f"{method} {path}: {message}") from None

    @contextlib.contextmanager
    def for_test(self):
        """A new sandbox, as a `with` block. At its end a fault that had to trigger and did not is an AssertionError."""
        opened = self.control("POST", "/sandboxes", {})
        try:
            yield Sandbox(Server(opened["control"]["base_url"], self.key), opened["account"])
        finally:
            untriggered = self.control("DELETE", "/sandboxes/" + opened["id"])["untriggered"]
        assert not untriggered, "The test armed faults that never triggered (must_trigger=False allows that):\n" + "\n".join(
            f"  {each['fault']} {json.dumps(each['options'])}, after {each['seen']} occasions" for each in untriggered
        )


class Sandbox:
    """The sandbox of one test."""

    def __init__(self, server, account):
        self.control = server.control
        self._account = account

    def provider(self, name):
        """The base URL and the API key at a provider, such as `provider-a` or `a`."""
        providers = self._account["providers"]
        at = providers.get(name) or providers[f"provider-{name}"]
        return Access(at["base_url"], at["api_key"])

    def marketplace(self):
        """The base URL and the API key at the marketplace, with the flag `--marketplace`."""
        at = self._account["marketplace"]
        return Access(at["base_url"], at["api_key"])

    def now(self):
        """The time of the sandbox."""
        return datetime.fromisoformat(self.control("GET", "/clock")["now"].replace("Z", "+00:00"))

    def advance(self, by):
        """Lets time pass: seconds, or a duration such as "90s" or "30d". A client takes it for time.sleep."""
        self.control("POST", "/clock/advance", {"by": by if isinstance(by, str) else by * 1000})

    def advance_until_idle(self):
        """Lets time pass until no work is in progress."""
        self.control("POST", "/clock/advance-until-idle")

    def fault(self, name, **options):
        """Arms a fault: fault("http-500", route="POST /instances", times=2). docs/sandbox-faults.md
        lists all. It must trigger, unless it has a `probability` or must_trigger=False."""
        must_trigger = "probability" not in options
        arming = {"fault": name, "must_trigger": must_trigger, **options}
        return Fault(self.control, self.control("POST", "/faults", arming)["id"])

    def transitions(self, mode, **options):
        """Sets how transitions of machines and volumes end: transitions("polls", polls=3, phase="boot")."""
        self.control("POST", "/transitions", {"mode": mode, **options})

    def journal(self, **where):
        """The requests of the client, with their answers: journal(operation="createInstance", status="2xx")."""
        return self.control("GET", "/journal?" + urlencode(where))["entries"]

    def assert_journal(self, assertion, where={}, **options):
        """Asserts something of the requests of the client: assert_journal("requests", {"method": "DELETE"},
        exactly=1). The control API's POST /journal/assertions describes all assertions."""
        asked = {"assert": assertion, **({"where": where} if where else {}), **options}
        [result] = self.control("POST", "/journal/assertions", {"assertions": [asked]})["results"]
        assert result["holds"], f"{assertion}: {result['message']}"

    def assert_verdict(self, *accepted):
        """Asserts that the client obeys every rule of the verdict, but for accepted ones such as "sends-region". Returns
        the verdict."""
        verdict = self.control("GET", "/verdict")
        failed = [
            f"  {rule['rule']}: {finding['message']}"
            for rule in verdict["rules"]
            if rule["result"] == "fail" and rule["rule"] not in accepted
            for finding in rule["findings"]
        ]
        if all(rule["result"] == "not_tested" for rule in verdict["rules"]):
            failed = ["  no rule was tested"]
        assert not failed, "The client fails the verdict:\n" + "\n".join(failed)
        return verdict


class Fault:
    """An armed fault."""

    def __init__(self, control, id):
        self._control, self.id = control, id

    def hits(self):
        """How often it has triggered."""
        faults = self._control("GET", "/faults?all=true")["faults"]
        return next(fault["hits"] for fault in faults if fault["id"] == self.id)
