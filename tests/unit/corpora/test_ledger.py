"""Limits on bytes: none is passed, and who asks for too much hears the figures."""

import re

import pytest

from draftd.config import LimitSettings
from draftd.corpora import Ledger, OverLimit
from draftd.wire import Namespace

MIB = 1 << 20
ACME = Namespace("acme", "m")
LEDGER = LimitSettings.model_validate({"namespace_bytes": 2 * MIB, "tenant_bytes": 3 * MIB, "process_bytes": 4 * MIB})


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(LEDGER)


@pytest.mark.parametrize(
    ("owner", "more", "limit"),
    [
        (ACME, 1.0, "limits.namespace_bytes, 2.0MiB"),
        (Namespace("acme", "other"), 2.0, "limits.tenant_bytes, 3.0MiB"),
        (Namespace("other", "m"), 3.0, "limits.namespace_bytes, 2.0MiB"),
    ],
)
def test_each_limit_holds_and_is_named(owner: Namespace, more: float, limit: str, ledger: Ledger) -> None:
    ledger.charge(ACME).hold(int(1.5 * MIB))
    with pytest.raises(OverLimit, match=re.escape(limit)):
        ledger.charge(owner).hold(int(more * MIB))
    ledger.charge(owner).hold(MIB // 2)


def test_what_builds_counts_for_the_process_alone(ledger: Ledger) -> None:
    ledger.charge(ACME).hold(MIB, building=int(2.5 * MIB))
    ledger.charge(ACME).hold(int(0.5 * MIB))
    with pytest.raises(OverLimit, match="process_bytes"):
        ledger.charge(Namespace("other", "m")).hold(MIB)


def test_a_refused_charge_is_as_before_and_can_be_released(ledger: Ledger) -> None:
    charge = ledger.charge(ACME)
    charge.hold(MIB)
    with pytest.raises(OverLimit):
        charge.hold(3 * MIB)
    assert (charge.kept, ledger.used()) == (MIB, MIB)
    charge.release()
    assert ledger.used() == 0


def test_less_is_never_refused(ledger: Ledger) -> None:
    charge = ledger.charge(ACME)
    charge.hold(2 * MIB, building=2 * MIB)
    charge.hold(2 * MIB)
    charge.hold(MIB)
    assert ledger.used() == MIB
