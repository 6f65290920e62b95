"""An XQuery processor in a process of its own: its runtime does not bear others beside it.

Reads jobs as JSON lines (query, document, names of functions that have ended) and prints results.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

Job = tuple[str, str, tuple[str, ...]]


def asked(jobs: Iterable[Job]) -> list[list[str]]:
    """Return the items that each query gives on its document."""
    finished = subprocess.run(
        [sys.executable, str(Path(__file__))],
        input="\n".join(map(json.dumps, jobs)),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return [json.loads(line) for line in finished.stdout.splitlines()]


def main() -> None:
    from saxonche import PySaxonProcessor

    with PySaxonProcessor(license=False) as processor:
        for line in sys.stdin:
            query, xml, ended = json.loads(line)
            compiler = processor.new_xquery_processor()
            compiler.set_context(xdm_item=processor.parse_xml(xml_text=xml))
            names = ", ".join(f'"{each}"' for each in ended)
            query = query.replace("$ended as xs:string* external := ()", f"$ended := ({names})")
            compiler.set_query_content(query)
            result = compiler.run_query_to_value()
            items = [] if result is None else [str(each) for each in result]
            print(json.dumps(items), flush=True)


if __name__ == "__main__":
    main()
