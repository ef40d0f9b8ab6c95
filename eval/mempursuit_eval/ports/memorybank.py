"""MemoryBank's read path on faiss-cpu: MemoryBank is a source checkout, not a package.

Written against `memory_bank/memory_retrieval/local_doc_qa.py` and the FAISS store of langchain
0.0.146; attribute and argument names are theirs, so that the adapter takes this as it takes the
real objects. A fresh store gives the same chunks, in the same order, as the original does.

Quirks of the original that are kept, because they decide what reaches the model:

- A seed looks for neighbours at distance 1, 2, … up to its label - 1, on both sides: the bound is
  `max(i, len(docs) - i)`, and `docs` is always empty there. So label 0 is never added as a
  neighbour, and the seeds 0 and 1 look nowhere.
- Within a distance the right neighbour comes first, and one that would break the budget of
  `chunk_size` characters ends that distance only: the left one is then not looked at, but the next
  distance is. The budget is checked before the date, so a long text of another date blocks too.
- The neighbours need not touch: a text that does not fit is skipped, and a shorter one further off
  in the same date is still taken. A seed longer than the budget takes none.
- Seeds and neighbours are merged into runs of consecutive labels, also across a change of date; a
  run counts under the date of its first text.
- Every chunk carries the score of the last column that FAISS returned.

Quirks that are not kept:

- The original appends to the stored documents themselves, so every search lengthens the texts that
  later searches of the process see and count against the budget: the same question gives another
  answer after other questions. Here a search changes nothing.
- With no seed at all the original raises IndexError; here there are no chunks.
- The inner loop's `k` hides the argument `k`, which is not read again: nothing follows from it.
- Removing the Chinese "conversation on DATE" header from each chunk, which no other text has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

CHUNK_SIZE = 200  # characters a seed and its neighbours may have together
TOP_K = 3  # MemoryBank's own number of seeds

_INDEX_FILE, _DOCUMENTS_FILE = "index.faiss", "documents.json"


@dataclass(frozen=True)
class Document:
    """A stored text; `metadata["source"]` is the date it belongs to."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)


class Docstore:
    """Documents by id, in memory."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._dict = dict(documents)

    def search(self, search: str) -> Document:
        """Return the document of an id."""
        return self._dict[search]


class FAISS:
    """A flat L2 index beside its documents, with MemoryBank's search on it."""

    def __init__(
        self,
        embedding_function: Callable[[str], Any],
        index: Any,
        documents: Mapping[str, Document],
        chunk_size: int = CHUNK_SIZE,
    ) -> None:
        self.embedding_function = embedding_function
        self.index = index
        self.docstore = Docstore(documents)
        self.index_to_docstore_id = dict(enumerate(documents))
        self.chunk_size = chunk_size
        texts = list(documents.values())
        self._lengths = [len(d.page_content) for d in texts]
        self._sources = [str(d.metadata["source"]) for d in texts]

    @classmethod
    def from_documents(
        cls,
        documents: Mapping[str, Document],
        embed: Callable[[Sequence[str]], NDArray[np.float32]],
        dimension: int,
    ) -> FAISS:
        """Embed and index `documents`, by id and in order; vectors are stored as they come."""
        index = faiss.IndexFlatL2(dimension)
        if documents:
            vectors = embed([d.page_content for d in documents.values()])
            index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        return cls(lambda text: embed([text])[0], index, documents)

    def save_local(self, folder: Path) -> None:
        """Write index and documents into `folder`."""
        faiss.write_index(self.index, str(folder / _INDEX_FILE))
        documents = {i: asdict(self.docstore.search(i)) for i in self.index_to_docstore_id.values()}
        (folder / _DOCUMENTS_FILE).write_text(json.dumps(documents), encoding="utf-8")

    @classmethod
    def load_local(cls, folder: Path, embedding_function: Callable[[str], Any]) -> FAISS:
        """Read what :meth:`save_local` wrote."""
        documents = json.loads((folder / _DOCUMENTS_FILE).read_text(encoding="utf-8"))
        return cls(
            embedding_function,
            faiss.read_index(str(folder / _INDEX_FILE)),
            {i: Document(**fields) for i, fields in documents.items()},
        )

    def similarity_search_with_score(self, query: str, k: int = 4) -> list[tuple[Document, float]]:
        """Return the chunks grown from the `k` seeds nearest to `query`, each with a score."""
        return self.similarity_search_with_score_by_vector(self.embedding_function(query), k)

    def similarity_search_with_score_by_vector(
        self, embedding: Any, k: int = 4
    ) -> list[tuple[Document, float]]:
        """Do so for an embedding, shape (d,)."""
        scores, labels = self.index.search(np.array([embedding], dtype=np.float32), k)
        seeds = [int(i) for i in labels[0] if i != -1]
        return [(self._chunk(run), float(scores[0][-1])) for run in self.runs(seeds)]

    def runs(self, seeds: Sequence[int]) -> list[list[int]]:
        """Return the labels of the chunks that `seeds` grow into, in label order."""
        chosen = set(seeds)
        for seed in seeds:
            chosen |= neighbours(seed, self._lengths, self._sources, self.chunk_size)
        return separate(sorted(chosen))

    def source_of(self, run: Sequence[int]) -> str:
        """Return the date under which a chunk is shown."""
        return self._sources[run[0]]

    def _chunk(self, run: Sequence[int]) -> Document:
        texts = [self.docstore.search(self.index_to_docstore_id[i]).page_content for i in run]
        return Document("".join(texts), {"source": self.source_of(run)})


class LocalMemoryRetrieval:
    """MemoryBank's reader."""

    def __init__(self, top_k: int = TOP_K) -> None:
        self.top_k = top_k

    def search_memory(self, query: str, vector_store: FAISS) -> tuple[list[str], str]:
        """Return one text a date, oldest first, and the dates joined by ", "."""
        found = vector_store.similarity_search_with_score(query, k=self.top_k)
        chunks = sorted((chunk for chunk, _ in found), key=_source)
        by_date = {
            source: "\n".join(chunk.page_content.strip() for chunk in group)
            for source, group in groupby(chunks, key=_source)
        }
        return list(by_date.values()), ", ".join(by_date)


def neighbours(
    seed: int, lengths: Sequence[int], sources: Sequence[str], chunk_size: int
) -> set[int]:
    """Return the labels that `seed` takes in from its own date within `chunk_size` characters.

    `lengths` and `sources` are of every stored text, by label. The module says which quirks of
    MemoryBank's loop this reproduces.
    """
    taken: set[int] = set()
    size = lengths[seed]
    same = [i for i, source in enumerate(sources) if source == sources[seed]]
    shortest = min(lengths[i] for i in same)
    # The original goes on to label - 1; past the date's ends, or with no room for the date's
    # shortest text, nothing more can be taken.
    last = min(seed - 1, max(seed - same[0], same[-1] - seed))
    for distance in range(1, last + 1):
        if size + shortest > chunk_size:
            break
        for label in (seed + distance, seed - distance):
            if not 0 <= label < len(lengths):
                continue
            if size + lengths[label] > chunk_size:
                break
            if sources[label] == sources[seed]:
                size += lengths[label]
                taken.add(label)
    return taken


def separate(labels: Sequence[int]) -> list[list[int]]:
    """Split ascending labels into runs of consecutive ones."""
    # A label minus its rank is the same all along a run.
    ranked = groupby(enumerate(labels), key=lambda pair: pair[1] - pair[0])
    return [[label for _, label in run] for _, run in ranked]


def _source(chunk: Document) -> str:
    return str(chunk.metadata["source"])
