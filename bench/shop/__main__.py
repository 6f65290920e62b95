"""`python -m bench.shop DIRECTORY`: write the files of the shop, or what one more day changes."""

import argparse
from pathlib import Path

from bench.shop.data import first_tables, next_tables, write


def main() -> None:
    """Write files."""
    parser = argparse.ArgumentParser("bench.shop", description="Write the files of the shop.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="times the sizes (default 1)")
    parser.add_argument("--next", action="store_true", help="as they are one day later")
    options = parser.parse_args()
    tables = first_tables(options.scale)
    write(options.directory, next_tables(tables) if options.next else tables)


if __name__ == "__main__":
    main()
