"""The writer of SVG: elements with escaped attributes and texts, numbers with one decimal."""

from html import escape

NAMESPACE = "http://www.w3.org/2000/svg"


def element(tag: str, *content: str, **attributes: object) -> str:
    """Return an element.

    Args:
        tag: its name.
        content: elements, and texts that are escaped already.
        attributes: `text_anchor` is `text-anchor`, `class_` is `class`; what is None is left out.

    >>> element("text", escape_text("a < b"), x=1.25, y=3, class_="name")
    '<text x="1.2" y="3" class="name">a &lt; b</text>'
    """
    words = [tag]
    for name, value in attributes.items():
        if value is not None:
            text = number(value) if isinstance(value, float) else escape_text(str(value))
            words.append(f'{name.rstrip("_").replace("_", "-")}="{text}"')
    opening = " ".join(words)
    return f"<{opening}>{''.join(content)}</{tag}>" if content else f"<{opening}/>"


def document(width: float, height: float, *content: str, title: str, **attributes: object) -> str:
    """Return a whole picture on white paper, a line for each part of it."""
    size = {"width": round(width), "height": round(height)}
    box = f"0 0 {size['width']} {size['height']}"
    root = element("svg", "", xmlns=NAMESPACE, **size, viewBox=box, **attributes)
    paper = element("rect", width="100%", height="100%", fill="white")
    heading = element("title", escape_text(title))
    return "\n".join([root.removesuffix("</svg>"), heading, paper, *content, "</svg>", ""])


def escape_text(text: str) -> str:
    """Return a text for XML, which has no control characters."""
    return escape("".join(each if each.isprintable() or each == "\n" else "�" for each in text))


def shorten(text: str, most: int) -> str:
    """Return a text of at most so many characters.

    >>> shorten("relation", 5)
    'rela…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def number(value: float) -> str:
    """Return a coordinate.

    >>> number(3.0), number(2.04)
    ('3', '2')
    """
    return f"{value:.1f}".removesuffix(".0")


def path(start: tuple[float, float], *moves: tuple[str, tuple[float, ...]]) -> str:
    """Return the data of a path: where it starts, and commands with their coordinates.

    >>> path((0, 0), ("L", (1, 2.5)), ("V", (4,)))
    'M0 0L1 2.5V4'
    """
    return "".join(
        command + " ".join(map(number, values)) for command, values in (("M", start), *moves)
    )
