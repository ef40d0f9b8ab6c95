"""Settings that must be in place before a framework is imported."""

import os
import tempfile
from pathlib import Path

# Mem0 reads both when it is imported: tests report nothing and write nothing to the home folder.
os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = str(Path(tempfile.gettempdir()) / "mempursuit-mem0")
