"""Documents and updates from texts and files: XML, JSON or terms."""

from pathlib import Path

from corollary.documents.errors import ActiveDocumentError
from corollary.documents.trees.forest import Forest
from corollary.documents.trees.json import read_json
from corollary.documents.trees.terms import read_terms
from corollary.documents.trees.xml import ReadOptions, read_xml

EXTENSIONS = {".xml": "xml", ".json": "json", ".term": "terms", ".terms": "terms", ".txt": None}


def read_forest(
    place: str | bytes | Path,
    reading: ReadOptions,
    name: str = "document",
    *,
    is_document: bool = False,
) -> Forest:
    """Return the trees of a text, or of a file.

    Args:
        place: a text, or a path; a string with the extension of a file may be a path, too.
        reading: how it is read.
        name: what messages call the text.
        is_document: whether it is a whole document, not what a function brings.

    Raises:
        ActiveDocumentError: it is malformed, or the file cannot be read.
    """
    format_ = reading.format
    if isinstance(place, Path) or (isinstance(place, str) and _is_path(place)):
        path = Path(place)
        name, format_ = path.name, format_ or EXTENSIONS.get(path.suffix.lower())
        try:
            place = path.read_bytes()
        except OSError as error:
            message = f"`{path}` cannot be read: {error.strerror or error}."
            raise ActiveDocumentError.of("C1229", message) from None
    format_ = format_ or _format_of(place)
    if format_ == "xml":
        return read_xml(place, reading, name, is_document=is_document)
    text = _decode(place, name)
    if format_ == "json":
        return read_json(text, name, is_document=is_document)
    return read_terms(text, name)


def _is_path(text: str) -> bool:
    """Whether a text is a path: a known extension, and no sign of a document."""
    start = text.lstrip()[:1]
    return (
        start not in ("<", "{", "[", '"', "!")
        and "[" not in text
        and "\n" not in text
        and Path(text).suffix.lower() in EXTENSIONS
    )


def _format_of(text: str | bytes) -> str:
    start = text.lstrip()[:1]
    start = start.decode("latin-1") if isinstance(start, bytes) else start
    if start in ("<", "\xef", "\xfe", "\xff"):
        return "xml"
    return "json" if start in ("{", "[") else "terms"


def _decode(text: str | bytes, name: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"`{name}` is not UTF-8: {error.reason} at byte {error.start}."
        raise ActiveDocumentError.of("C1229", message) from None
