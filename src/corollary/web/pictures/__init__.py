"""Pictures as SVG: computed here, coloured by the style sheet, without scripts or inline styles."""
