"""Text encoders by name."""
