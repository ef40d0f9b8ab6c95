"""Property tests run the same examples every time, and without a clock."""

from hypothesis import settings

settings.register_profile("mempursuit", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("mempursuit")
