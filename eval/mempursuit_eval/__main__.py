"""`python -m mempursuit_eval`, the same as `mempursuit-eval`."""

from mempursuit_eval.entry import main

main()
