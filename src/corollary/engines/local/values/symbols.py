"""The code domain of symbols.

The code of a text is its number in the order of arrival; number 0 stands for null. Texts live in
Arrow arrays, those of a file in the file. Few texts, those of a small transaction, are found
through a Python dictionary of the latest ones; many are found by Arrow among all, or through an
index of hashes that is built when it is first needed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import fixed_values, index_array, null_mask, string_array
from corollary.engines.local.storage.blocks import Blocks
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.values.stored_strings import StoredStrings, store_strings
from corollary.engines.local.values.text_index import TextIndex, hash_text
from corollary.engines.local.values.texts import Texts

FEW_TEXTS = 64
"""Up to this many texts are encoded one by one, as Python strings."""

SEARCHED_TEXTS_MAX = 1 << 12
"""Up to this many, if reading all texts of a file would take longer."""

CACHED_TEXTS_MAX = 1 << 16
"""The maximum number of texts in the Python dictionary."""

CACHED_CHARACTERS_MAX = 1 << 26
"""The maximum number of characters of these texts."""

CACHED_TEXT_BYTES = 150
"""The approximate size of a text in the Python dictionary, besides its characters."""

PENDING_TEXTS_MAX = 1 << 12
"""The maximum number of new texts that are Python strings, before they are moved to Arrow."""

HASH_ALL_RATIO = 8
"""Arrow hashes all known texts if there are at most this many for each one to be found."""

LATEST_MIN_TEXTS = 1 << 16
"""The codes of a dictionary of this many texts are kept for the next slice of its column."""

LOAD_ALL_SEARCH_RATIO = 64
"""All stored strings are loaded once one in this many has been searched for by value."""


class SymbolDomain:
    """Texts and their codes."""

    def __init__(self) -> None:
        self._clear(string_array([""]))

    def _clear(self, *chunks: pa.Array) -> None:
        # In the order of codes: the texts of the file, those of the chunks, those to be moved.
        self._stored: StoredStrings | None = None
        self._file: StoredStrings | None = None  # the same without what was read of it
        self._chunks = list(chunks)
        self._pending: list[str] = []
        self._cache: dict[str, int] = {}
        self._cached_characters = 0
        self._index: TextIndex | None = None
        # All texts from this code on are in the dictionary: they need not be in the index.
        self._cached_from = sum(map(len, chunks))
        self._searched = 0
        self._latest: tuple[tuple[int, ...], Codes, pa.Array] | None = None

    @property
    def _stored_count(self) -> int:
        return 0 if self._stored is None else len(self._stored)

    @property
    def _arrow_count(self) -> int:
        return self._stored_count + sum(map(len, self._chunks))

    # --- codes ---------------------------------------------------------------------------------

    def encode(self, values: Texts) -> Codes:
        """Return the codes of texts, new ones interned."""
        if self._is_few(len(values)):
            return self.encode_python(values.tolist())
        return self.encode_arrow(pa.chunked_array([values.array]))

    def encode_python(self, values: Sequence[str]) -> Codes:
        """Return the codes of Python strings, new ones interned."""
        if not self._is_few(len(values)):
            return self.encode_arrow(pa.chunked_array([string_array(values)]))
        cache = self._make_room()
        missing = list(dict.fromkeys(value for value in values if value not in cache))
        if missing:
            self._cached_characters += sum(map(len, missing))
            cache.update(self._find_few(missing))
            for value in missing:
                if value not in cache:
                    cache[value] = self._arrow_count + len(self._pending)
                    self._pending.append(value)
        return np.array([cache[value] for value in values], np.int64)

    def _is_few(self, count: int) -> bool:
        """Whether `count` texts are looked up one by one: more of them if a file has many."""
        is_searched = count * LOAD_ALL_SEARCH_RATIO <= self._stored_count
        return count <= FEW_TEXTS or (is_searched and count <= SEARCHED_TEXTS_MAX)

    def _make_room(self) -> dict[str, int]:
        """Return the dictionary of the latest texts, emptied if there are too many."""
        if (
            len(self._pending) > PENDING_TEXTS_MAX
            or len(self._cache) > CACHED_TEXTS_MAX
            or self._cached_characters > CACHED_CHARACTERS_MAX
        ):
            self._flush()
            self._cache = {}
            self._cached_characters = 0
            self._cached_from = self._arrow_count
        return self._cache

    def _find_few(self, values: list[str]) -> dict[str, int]:
        """Return the codes of those texts, not in the dictionary, that are known."""
        found = {} if self._stored is None else self._find_stored(self._stored, values)
        values = [value for value in values if value not in found]
        if values and self._cached_from > max(self._stored_count, 1):
            index = self._index_to(self._cached_from)
            for value in values:
                text = value.encode()
                for code in index.candidates(hash_text(text)):
                    if self._text(code) == value:
                        found[value] = code
        return found

    def _find_stored(self, stored: StoredStrings, values: list[str]) -> dict[str, int]:
        self._searched += len(values)
        if self._searched * LOAD_ALL_SEARCH_RATIO > len(stored):
            self._load(stored)
            return {}
        return stored.find(values)

    def encode_arrow(self, column: pa.ChunkedArray) -> Codes:
        """Return the codes of a column of strings, perhaps of dictionaries; 0 for null."""
        if not len(column):
            return np.empty(0, np.int64)
        if pa.types.is_dictionary(column.type):
            # The dictionary of a source may have a text twice, or null.
            encoded = column.unify_dictionaries().combine_chunks()
            known = self._dictionary_codes(encoded.dictionary)
        else:
            if column.nbytes >> 30:  # the distinct texts may be too large for 32-bit offsets
                column = column.cast(pa.large_string())
            encoded = column.dictionary_encode().combine_chunks()
            known = self._encode_distinct(encoded.dictionary.cast(pa.large_string()))
        indices = encoded.indices.cast(pa.int64())
        nulls = null_mask(indices)
        rows = fixed_values(indices, np.int64)
        codes: Codes
        if nulls is None:
            codes = known[rows]
            return codes
        codes = np.zeros(len(rows), np.int64)
        codes[~nulls] = known[rows[~nulls]]
        return codes

    def _dictionary_codes(self, texts: pa.Array) -> Codes:
        """Return the codes of a dictionary's texts; the next slice of a column has the same one."""
        if len(texts) < LATEST_MIN_TEXTS:
            return self.encode_arrow(pa.chunked_array([texts]))
        places = [0 if buffer is None else buffer.address for buffer in texts.buffers()]
        key = (*places, texts.offset, len(texts))
        if self._latest is None or self._latest[0] != key:
            self._latest = None
            # The texts are held as well, so that no other ones can be at their place.
            self._latest = key, self.encode_arrow(pa.chunked_array([texts])), texts
        return self._latest[1]

    def release(self) -> None:
        """Forget the latest dictionary."""
        self._latest = None

    def _encode_distinct(self, texts: pa.Array) -> Codes:
        """Return the codes of distinct texts, none of them null."""
        if self._is_few(len(texts)):
            return self.encode_python(texts.to_pylist())
        self._flush()
        if self._stored is not None:
            self._load(self._stored)
        count = self._arrow_count
        if count == 1:
            codes = np.zeros(len(texts), np.int64)
        elif count <= HASH_ALL_RATIO * len(texts):
            # Number 0 has no text: it stands for null.
            known = pa.chunked_array([self._chunks[0][1:], *self._chunks[1:]])
            found = pc.index_in(texts, value_set=known)
            codes = fixed_values(found, np.int32) + np.int64(1)
            is_new = null_mask(found)
            if is_new is not None:
                codes[is_new] = 0
        else:
            codes = self._index_to(count).find(texts, self._take)
        unknown = (codes == 0).nonzero()[0]
        codes[unknown] = np.arange(count, count + len(unknown))
        is_all = len(unknown) == len(texts)
        self._append(texts if is_all else texts.take(index_array(unknown)))
        self._cached_from = self._arrow_count
        return codes

    def _index_to(self, end: int) -> TextIndex:
        """Return the index of the texts in Arrow arrays, not in the file, up to a code."""
        if self._index is None:
            self._index = TextIndex(max(self._stored_count, 1))
        if self._index.count < end:
            self._index.extend(self._take(np.arange(self._index.count, end)))
        return self._index

    # --- texts ---------------------------------------------------------------------------------

    def decode(self, codes: Codes) -> Texts:
        """Return the texts of codes; the empty one for null."""
        if len(codes) <= FEW_TEXTS:
            return Texts.of([self._text(code) for code in codes.tolist()])
        self._flush()
        return Texts(self._take(codes))

    def decode_arrow(self, codes: Codes) -> pa.Array | pa.ChunkedArray:
        """Return the texts of codes as an array of `string`, or several where one is too small."""
        if len(codes) <= FEW_TEXTS:
            few = [self._text(code) if code else None for code in codes.tolist()]
            return string_array(few, pa.string())
        self._flush()
        nulls = codes == 0
        strings = self._take(codes, nulls if nulls.any() else None)
        # `string` has 32-bit offsets: from 2 GiB on, one array cannot hold them.
        if strings.nbytes >> 31 and len(codes) > 1:
            halves = [self.decode_arrow(half) for half in np.array_split(codes, 2)]
            return pa.chunked_array([chunk for half in halves for chunk in _chunks(half)])
        return strings.cast(pa.string())

    def _text(self, code: int) -> str:
        """Return one text."""
        if self._stored is not None:
            if code < len(self._stored):
                return self._stored.bytes_of(code).decode()
            code -= len(self._stored)
        for chunk in self._chunks:
            if code < len(chunk):
                text: str = chunk[code].as_py()
                return text
            code -= len(chunk)
        return self._pending[code]

    def _take(self, codes: Codes, nulls: Any = None) -> pa.Array:
        """Return the texts of codes, none of them pending."""
        sources: list[Any] = [*([] if self._stored is None else [self._stored]), *self._chunks]
        if len(sources) == 1 and self._stored is None:
            return self._chunks[0].take(index_array(codes, nulls))
        starts = np.cumsum([0, *map(len, sources)])
        owners = starts.searchsorted(codes, "right") - 1
        parts, rows = [], []
        for number, source in enumerate(sources):
            own = (owners == number).nonzero()[0]
            if not len(own):
                continue
            numbers = codes[own] - starts[number]
            is_stored = isinstance(source, StoredStrings)
            parts.append(source.take(numbers if is_stored else index_array(numbers)))
            rows.append(own)
        if not parts:
            return self._chunks[0][:0] if self._chunks else string_array([])
        order = np.empty(len(codes), np.int64)
        order[np.concatenate(rows)] = np.arange(len(codes))
        return pa.concat_arrays(parts).take(index_array(order, nulls))

    @property
    def code_bound(self) -> int:
        """The code of the next new text; all codes are smaller."""
        return self._arrow_count + len(self._pending)

    @property
    def is_ordered(self) -> bool:
        """Whether codes are in the order of their values: never, they are in that of arrival."""
        return False

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        stored = 0 if self._stored is None else self._stored.nbytes
        index = 0 if self._index is None else self._index.nbytes
        chunks: int = sum(each.nbytes for each in self._chunks)
        cached = CACHED_TEXT_BYTES * len(self._cache) + self._cached_characters
        return stored + index + chunks + cached

    # --- moving texts --------------------------------------------------------------------------

    def _flush(self) -> None:
        """Move the texts that are Python strings to Arrow."""
        if self._pending:
            self._append(string_array(self._pending))
            self._pending = []

    def _append(self, texts: pa.Array) -> None:
        """Add a chunk; chunks of similar size are joined, so that they stay few."""
        if not len(texts):
            return
        chunks = self._chunks
        while chunks and len(chunks[-1]) <= 2 * len(texts):
            texts = pa.concat_arrays([chunks.pop(), texts])
        chunks.append(texts)

    def _load(self, stored: StoredStrings) -> None:
        """Read all stored strings; the file is not needed any more."""
        self._chunks.insert(0, stored.read_all())
        self._index = stored.read_index()
        self._stored = None
        self._cached_from = self._arrow_count

    def dump(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return all strings in the order of their codes; of a file, the blocks that it has."""
        self._flush()
        stored = self._file
        if stored is None:
            stored = store_strings(pa.concat_arrays(self._chunks))
        elif self._arrow_count > len(stored):
            stored = stored.append(self._texts_from(len(stored)))
        return {"count": len(stored)}, [stored.texts, stored.hashes, stored.fences]

    def _texts_from(self, first: int) -> pa.Array:
        """Return the texts from a code on, which are in the chunks."""
        parts = []
        start = self._stored_count
        for chunk in self._chunks:
            parts.append(chunk[max(first - start, 0) :])
            start += len(chunk)
        return pa.concat_arrays(parts)

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Replace the contents by a header and parts of a file, to be read when needed."""
        self._clear()
        self._stored, self._file = (StoredStrings(header["count"], *blocks) for _ in range(2))
        self._cached_from = len(self._stored)


def _chunks(part: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return part.chunks if isinstance(part, pa.ChunkedArray) else [part]
