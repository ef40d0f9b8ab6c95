"""Text encoders by name."""

from mempursuit_eval.encoders.base import Encoder, EncoderUnavailableError
from mempursuit_eval.encoders.memo import MemoEncoder
from mempursuit_eval.encoders.registry import make_encoder

__all__ = ["Encoder", "EncoderUnavailableError", "MemoEncoder", "make_encoder"]
