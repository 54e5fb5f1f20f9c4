"""What every test folder shares: how hard hypothesis tries, and where recorded traffic may be found."""

import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Real engines run in an environment of their own: make test-engines. torch alone may come with the extra `gpu`.
collect_ignore = [] if find_spec("vllm") else ["engines"]

# No deadlines: a slow machine is not a failing test.
settings.register_profile("default", max_examples=100, deadline=None, print_blob=True)
settings.register_profile(
    "thorough", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")


# A shell switches Ctrl-C off in what it starts in the background, and so would be the servers that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--traces",
        type=Path,
        default=None,
        metavar="DIR",
        help="a folder of recorded traffic (*.jsonl, *.jsonl.gz) for the tests that want more than the bundled sample",
    )


@pytest.fixture(scope="session")
def traces(request: pytest.FixtureRequest) -> Path:
    """The folder given with --traces; tests that need it are skipped without it."""
    folder: Path | None = request.config.getoption("--traces")
    if folder is None:
        pytest.skip("needs recorded traffic: --traces DIR")
    return folder
