"""Tests that must fail: other-languages.long.test.ts runs them beside examples/pytest."""
from test_client import client_of, rent


def test_a_fault_that_never_strikes(sandbox):
    sandbox.fault("http-500", skip=3)


def test_a_machine_that_is_left(sandbox):
    rent(client_of(sandbox), "left")
    sandbox.assert_journal("all_destroyed")


def test_a_verdict_that_fails(sandbox):
    rent(client_of(sandbox), "left")
    sandbox.advance(60)
    sandbox.assert_verdict()


def test_a_request_that_the_sandbox_refuses(sandbox):
    sandbox.fault("http-600")
