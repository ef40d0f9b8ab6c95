"""What can go wrong with calls of a model."""

from __future__ import annotations


class CallFailedError(RuntimeError):
    """One call failed for good; the message says why."""


class EndpointError(RuntimeError):
    """No call can succeed at this endpoint as things are; the message says what to do."""
