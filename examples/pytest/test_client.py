from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from client import Client

SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK training"


def client_of(sandbox, cls=Client):
    """The client with the key of this test's sandbox. It pauses in the time of the sandbox."""
    return cls(*sandbox.provider("d"), sleep=sandbox.advance)


def rent(client, name):
    offer = client.offers()[0]
    order = {"configuration_id": offer["id"], "region": offer["regions"][0], "name": name, "ssh_keys": [SSH_KEY]}
    return client.create(order, name)


# Isolation


def test_tests_at_the_same_time_see_only_their_own_machines(sandbox_server):
    have_all = Barrier(4)

    def one_test(number):
        with sandbox_server.for_test() as sandbox:
            client = client_of(sandbox)
            machine = client.wait_until_online(rent(client, f"machine-{number}"))
            have_all.wait()
            return machine, client.machines()

    with ThreadPoolExecutor(4) as threads:
        for machine, listed in threads.map(one_test, range(4)):
            assert listed == [machine]


# Clock


def test_waits_for_a_boot_in_the_time_of_the_sandbox(sandbox):
    client = client_of(sandbox)
    began = sandbox.now()
    assert client.wait_until_online(rent(client, "first"))["status"] == "ONLINE"
    assert sandbox.now() - began >= timedelta(seconds=50)


# Faults


@pytest.mark.parametrize("fault", ["answer-lost", "request-lost", "http-429", "http-504", "truncated-json"])
def test_rents_one_machine_although_the_create_meets(fault, sandbox):
    client = client_of(sandbox)
    armed = sandbox.fault(fault, route="POST /instances", times=2)
    machine = rent(client, fault)
    assert armed.hits() == 2
    assert client.wait_until_online(machine)["status"] == "ONLINE"
    sandbox.assert_journal("never_created_twice")


@pytest.mark.parametrize("fault", ["false-404", "http-500", "html-page", "half-body-reset", "unknown-status"])
def test_keeps_its_machine_although_a_poll_meets(fault, sandbox):
    client = client_of(sandbox)
    machine = rent(client, fault)
    sandbox.fault(fault, instance=machine["id"])
    assert client.wait_until_online(machine)["status"] == "ONLINE"


def test_gives_up_a_machine_whose_boot_fails(sandbox):
    sandbox.fault("boot-fails")
    client = client_of(sandbox)
    assert client.wait_until_online(rent(client, "failing"))["status"] == "ERROR"


# Claims


def test_polls_in_time_leaves_nothing_and_obeys_the_contract(sandbox):
    client = client_of(sandbox)
    sandbox.fault("http-503", route="GET /instances/{id}")
    client.destroy(client.wait_until_online(rent(client, "whole-life")))
    sandbox.assert_journal("polled_at_least_every", seconds=30)
    sandbox.assert_journal("all_destroyed")
    sandbox.assert_journal("requests", {"method": "DELETE"}, exactly=1)
    sandbox.assert_verdict()


class WithoutKey(Client):
    def create(self, order, idempotency_key):
        return self._repeat("POST", "/instances", order)


def test_a_client_without_an_idempotency_key_rents_two(sandbox):
    sandbox.fault("answer-lost", route="POST /instances")
    rent(client_of(sandbox, WithoutKey), "twice")
    with pytest.raises(AssertionError, match="never_created_twice: the same create made"):
        sandbox.assert_journal("never_created_twice")
