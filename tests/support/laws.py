"""Hypothesis settings and ids for the contract tests of coordination."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

laws = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
ids = st.sampled_from(["python/fmt", "git__commit", "a:b", "ключ", "with space", "%s\n"])
