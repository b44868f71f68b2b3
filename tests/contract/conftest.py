"""Fixtures shared by several contract tests."""

import uuid
from collections.abc import Callable

import pytest


@pytest.fixture
def collection() -> Callable[[], str]:
    """Make a new, unused collection name at each call."""
    return lambda: f"repertory_{uuid.uuid4().hex[:16]}_minilm-r1_g1"
