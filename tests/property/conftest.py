"""Hypothesis profiles of the property tests: set HYPOTHESIS_PROFILE=thorough for a long search."""

import os

from hypothesis import HealthCheck, settings

SLOW_MACHINES = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("modest", max_examples=300, deadline=None, suppress_health_check=SLOW_MACHINES)
settings.register_profile("thorough", max_examples=2000, deadline=None, suppress_health_check=SLOW_MACHINES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "modest"))
