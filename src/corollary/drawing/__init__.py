"""Pictures as SVG, without scripts: one writer of elements, one layered layout."""
