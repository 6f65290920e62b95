"""Symbols have one code each: whichever way they come, however many, and after reopening."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.arrow_buffers import string_array
from corollary.engines.local.values import stored_strings, symbols, text_index
from corollary.engines.local.values.symbols import SymbolDomain
from corollary.engines.local.values.text_index import HASHED_BYTES_MAX, hash_text, hash_texts
from support.selection import examples

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.sampled_from(("", "a", "b", "\0", "a\0", "aaaaaaaa", "aaaaaaaab", "é" * 8, "x" * 300)),
)


@contextmanager
def ways(few: int, ratio: int, pending: int, is_clashing: bool) -> Iterator[None]:
    """Every way of finding texts, for few of them; all hashes may be one of two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symbols, "FEW_TEXTS", few)
        patch.setattr(symbols, "HASH_ALL_RATIO", ratio)
        patch.setattr(symbols, "PENDING_TEXTS_MAX", pending)
        patch.setattr(symbols, "CACHED_TEXTS_MAX", 2 * pending)
        patch.setattr(stored_strings, "BLOCK_ROWS", 3)
        patch.setattr(stored_strings, "HASH_BLOCK_ROWS", 4)
        patch.setattr(symbols, "LOAD_ALL_SEARCH_RATIO", ratio)
        if is_clashing:
            plain = hash_texts
            one = hash_text
            for module in (text_index, stored_strings):
                patch.setattr(module, "hash_texts", lambda texts: plain(texts) & 1)
            for user in (symbols, stored_strings):
                patch.setattr(user, "hash_text", lambda text: one(text) & 1)
        yield


def encode(domain: SymbolDomain, texts: list[str | None], way: str) -> list[int]:
    """The codes of texts, which come as Python strings, or as one of several columns."""
    if way == "python":
        present = domain.encode_python([text for text in texts if text is not None]).tolist()
        return [0 if text is None else present.pop(0) for text in texts]
    cut = len(texts) // 3
    parts = [pa.array(texts[:cut], pa.string()), pa.array(texts[cut:], pa.string())]
    column = pa.chunked_array(parts, pa.string())
    if way == "dictionary":
        column = pa.chunked_array([part.dictionary_encode() for part in parts])
    return domain.encode_arrow(
        column.cast(pa.large_string()) if way == "large" else column
    ).tolist()


@given(
    st.lists(
        st.tuples(
            st.lists(st.one_of(TEXTS, TEXTS, st.none()), max_size=9),
            st.sampled_from(("python", "arrow", "large", "dictionary", "reopen")),
        ),
        max_size=8,
    ),
    st.sampled_from((0, 3, 64)),
    st.sampled_from((0, 1, 64)),
    st.sampled_from((0, 2, 100)),
    st.booleans(),
)
@settings(max_examples=examples(25, 1000), deadline=None)
def test_a_text_keeps_its_code(
    batches: list[tuple[list[str | None], str]], few: int, ratio: int, pending: int, clash: bool
) -> None:
    with ways(few, ratio, pending, clash):
        domain = SymbolDomain()
        seen: dict[str | None, int] = {None: 0}
        for texts, way in batches:
            if way == "reopen":
                header, blocks = domain.dump()
                domain = SymbolDomain()
                domain.restore(header, blocks)
            for text, code in zip(texts, encode(domain, texts, way), strict=True):
                assert seen.setdefault(text, code) == code
            assert sorted(seen.values()) == list(range(len(seen)))
            asked = np.array([seen[text] for text in texts], np.int64)
            assert domain.decode_arrow(asked).to_pylist() == texts
            assert domain.decode(asked).tolist() == ["" if each is None else each for each in texts]
        everything = np.array(list(seen.values()), np.int64)
        assert domain.decode_arrow(everything).to_pylist() == list(seen)


@given(st.lists(st.one_of(TEXTS, st.text("ab", min_size=HASHED_BYTES_MAX, max_size=260))))
def test_hashes_depend_on_the_text_alone(texts: list[str]) -> None:
    array = string_array(["before", *texts, "after"])[1:-1]
    found = hash_texts(array).tolist()
    assert found == [hash_texts(string_array([text])).item() for text in texts]
    assert found == [hash_text(text.encode()) for text in texts]


def test_hashes_tell_texts_apart() -> None:
    texts = [f"{number}" for number in range(50_000)] + ["a" * size for size in range(300)]
    assert len(np.unique(hash_texts(string_array(texts)))) == len(texts)


def test_many_texts_take_little_more_than_their_bytes() -> None:
    domain = SymbolDomain()
    texts: Any = [f"customer {number:08d}" for number in range(100_000)]
    domain.encode_arrow(pa.chunked_array([pa.array(texts)]))
    domain.encode_python(["customer 00000005", "another"])
    assert domain.nbytes < 45 * len(texts)


def test_slices_of_a_column_share_the_codes_of_its_dictionary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(symbols, "LATEST_MIN_TEXTS", 100)
    texts = [f"text {number}" for number in range(300)]
    rows = [texts[number * 7 % 300] if number % 11 else None for number in range(2_000)]
    column = pa.chunked_array([pa.array(rows).dictionary_encode()])
    domain = SymbolDomain()
    encoded: list[int] = []
    really = domain._encode_distinct

    def note(some: pa.Array) -> Any:
        encoded.append(len(some))
        return really(some)

    monkeypatch.setattr(domain, "_encode_distinct", note)
    parts = [domain.encode_arrow(column[at : at + 500]).tolist() for at in range(0, 2_000, 500)]
    found = [code for part in parts for code in part]
    assert len(encoded) == 1
    assert domain.decode_arrow(np.array(found)).to_pylist() == rows
    other = pa.array([f"new {number}" for number in range(300)]).dictionary_encode()
    codes = domain.encode_arrow(pa.chunked_array([other])).tolist()
    assert len({*codes} - {*found}) == 300
    domain.release()
    assert domain.encode_arrow(column).tolist() == found
