"""Adapters: where a framework's pool comes from and where the choice goes back.

One module a framework (`mem0`, `lightmem`, `simplemem`, `memorybank`), each with `attach`,
`install` and `uninstall`; importing this package imports none of the frameworks.
"""

import logging

from mempursuit_adapters.choice import Choice, choose
from mempursuit_adapters.handle import Handle
from mempursuit_adapters.pool import Pool
from mempursuit_adapters.reader import Stats

__all__ = ["Choice", "Handle", "Pool", "Stats", "choose"]

# A library stays silent unless its user configures logging.
logging.getLogger("mempursuit").addHandler(logging.NullHandler())
