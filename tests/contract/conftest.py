"""Fixtures of several contracts."""

import uuid
from collections.abc import Callable

import pytest


@pytest.fixture
def collection() -> Callable[[], str]:
    """Names of collections that were never used."""
    return lambda: f"repertory_{uuid.uuid4().hex[:16]}_minilm-r1_g1"
