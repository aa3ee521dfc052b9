import pytest
from berth_sandbox import sandbox, sandbox_server  # noqa: F401


@pytest.fixture(scope="session")
def sandbox_flags():
    return ["--providers", "d", "--timing", "boot=50s-90s"]
