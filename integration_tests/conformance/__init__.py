"""The suite that every adapter must pass; see `AdapterConformance`."""

import pytest

pytest.register_assert_rewrite("integration_tests.conformance.suite")

from integration_tests.conformance.data import CountingEncoder, Memory, keys_in  # noqa: E402
from integration_tests.conformance.faults import Fault  # noqa: E402
from integration_tests.conformance.suite import AdapterConformance, K  # noqa: E402

__all__ = ["AdapterConformance", "CountingEncoder", "Fault", "K", "Memory", "keys_in"]
