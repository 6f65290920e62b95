"""The pages: a module for each, with `PAGES`; a page asks `Service` and renders a template."""
