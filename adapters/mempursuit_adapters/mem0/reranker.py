"""The reranker that Mem0's configuration names `mempursuit`."""

from __future__ import annotations

from typing import Any

from mem0.configs.rerankers.base import BaseRerankerConfig
from mem0.reranker.base import BaseReranker
from pydantic import ConfigDict, Field, field_validator, model_validator

from mempursuit_adapters.mem0.inflight import current
from mempursuit_adapters.mem0.reading import PursuitRead
from mempursuit_adapters.mem0.settings import POOL_SIZE, Settings
from mempursuit_adapters.reader import Reader
from mempursuit_core import AdaptiveStop
from mempursuit_core.presets import Discount


class PursuitRerankerConfig(BaseRerankerConfig):  # type: ignore[misc]
    """The block `{"provider": "mempursuit", "config": {…}}`; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")

    pool_size: int = Field(default=POOL_SIZE, description="Candidates the pursuit picks from")
    preset: str = Field(default="paper", description="'paper' or 'auto'")
    discount: Discount | None = Field(default=None, description="Replaces the preset's discount")
    near_duplicate: float | None = Field(default=None, description="Replaces the preset's cosine")
    ridge: float | None = Field(default=None, description="Replaces the refit's ridge")
    stop: AdaptiveStop | None = Field(default=None, description="{'tolerance': …, 'patience': …}")

    @field_validator("model", "api_key")
    @classmethod
    def _no_model(cls, value: str | None) -> str | None:
        if value is not None:
            raise ValueError("mempursuit runs no model and calls no service; leave this out")
        return value

    @model_validator(mode="after")
    def _dials_in_range(self) -> PursuitRerankerConfig:
        self.settings()
        return self

    def settings(self) -> Settings:
        """Return the block as checked settings."""
        return Settings.resolve(
            self.pool_size,
            self.preset,
            discount=self.discount,
            near_duplicate=self.near_duplicate,
            ridge=self.ridge,
            stop=self.stop,
        )


class PursuitReranker(BaseReranker):  # type: ignore[misc]
    """Picks from the pool with the vectors the store already has.

    Mem0 calls `rerank` itself; the query vector and the store come from the search in flight.
    `reader` is the attachment's own; None where a config block made the reranker.
    """

    def __init__(
        self,
        config: PursuitRerankerConfig | None = None,
        *,
        settings: Settings | None = None,
        reader: Reader | None = None,
    ) -> None:
        self.config = config or PursuitRerankerConfig()
        self.settings = settings or self.config.settings()
        self.reader = reader

    def rerank(
        self, query: str, documents: list[dict[str, Any]], top_k: int | None = None
    ) -> list[dict[str, Any]]:
        """Return up to `top_k` of `documents` in entry order, each with `rerank_score`."""
        k = top_k or self.config.top_k or len(documents)
        search = current()
        if isinstance(search, PursuitRead):
            return search.choose(documents, k)
        # After uninstall(), a memory made before it still holds this reranker.
        return documents[:k]
