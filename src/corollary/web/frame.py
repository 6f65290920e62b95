"""What all pages share: the service, the templates, static files, the navigation."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from corollary.data_class import dataclass
from corollary.serve.service import Service
from corollary.web.wording import FILTERS

HERE = Path(__file__).parent
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""The files of `static` and `vendor` that browsers get."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that browsers keep.

    Attributes:
        version: changes with the content.
    """

    content: bytes
    media_type: str
    version: str


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A page in the navigation.

    Attributes:
        keys: what takes one there from the keyboard, such as `g m`.
    """

    path: str
    title: str
    keys: str


class PageFrame:
    """What all pages share.

    Args:
        service: answers requests.
        warehouse: the name that the page shows.
        navigation: in its order.

    Attributes:
        files: those that browsers get, by path.
        templates: of jinja2; values are escaped wherever they stand.
    """

    def __init__(
        self, service: Service, warehouse: str, navigation: Sequence[NavigationEntry]
    ) -> None:
        self.service = service
        self.warehouse = warehouse
        self.navigation = tuple(navigation)
        self.files = {
            f"/{folder}/{path.name}": _read(path)
            for folder in ("static", "vendor")
            for path in (HERE / folder).iterdir()
            if path.suffix in MEDIA_TYPES
        }
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters.update(FILTERS)

    def file(self, path: str) -> str:
        """Return the URL of a static file, which changes with its content."""
        return f"{path}?v={self.files[path].version}"


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    version = hashlib.sha256(content).hexdigest()[:12]
    return StaticFile(content, MEDIA_TYPES[path.suffix], version)
