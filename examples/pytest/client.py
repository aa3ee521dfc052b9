"""The client under test: rents a machine, waits until it is ONLINE, and destroys it."""
import json
import time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

POLL_S = 15
ATTEMPTS = 5
# After so many answers 404 in a row a machine counts as gone: one of them may be wrong.
MISSES = 2


class NoAnswer(Exception):
    """The answer says nothing of the machine: the client asks again."""


class Refused(Exception):
    def __init__(self, status):
        super().__init__(f"the provider refuses: {status}")
        self.status = status


class Client:
    def __init__(self, base_url, api_key, sleep=time.sleep, timeout_s=60):
        self.base_url, self.api_key, self.sleep, self.timeout_s = base_url, api_key, sleep, timeout_s

    def offers(self):
        return self._repeat("GET", "/availability")["configurations"]

    def machines(self):
        return self._repeat("GET", "/instances")["instances"]

    def create(self, order, idempotency_key):
        """With the same key a provider makes one machine, however often it is asked."""
        return self._repeat("POST", "/instances", order, {"Idempotency-Key": idempotency_key})

    def wait_until_online(self, machine):
        """Returns the machine once it is ONLINE or ERROR, or None if it is gone."""
        return self._poll(machine, ("ONLINE", "ERROR"))

    def destroy(self, machine):
        """Returns once the machine is gone."""
        try:
            self._repeat("DELETE", path_of(machine))
        except Refused as refused:
            if refused.status != 404:
                raise
            return
        self._poll(machine, ())

    def _poll(self, machine, ends):
        misses = 0
        while misses < MISSES:
            self.sleep(POLL_S)
            try:
                read = self._ask("GET", path_of(machine))
                if read["status"] in ends:
                    return read
                misses = 0
            except NoAnswer:
                pass
            except Refused as refused:
                if refused.status != 404:
                    raise
                misses += 1
        return None

    def _repeat(self, *request):
        for attempt in range(1, ATTEMPTS):
            try:
                return self._ask(*request)
            except NoAnswer:
                self.sleep(2**attempt)
        return self._ask(*request)

    def _ask(self, method, path, body=None, headers={}):
        own = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.base_url + path, data, own, method=method), timeout=self.timeout_s) as reply:
                return json.load(reply)
        except HTTPError as error:
            with error:
                wait_s = int(error.headers.get("Retry-After", 0))
            if wait_s > 0:
                self.sleep(wait_s)
            if error.code == 429 or error.code >= 500:
                raise NoAnswer(f"it answers {error.code}") from None
            raise Refused(error.code) from None
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswer(str(error)) from error


def path_of(machine):
    return f"/instances/{quote(machine['id'])}?region={quote(machine['region'])}"
