"""Types of functions: what the trees that they bring look like, and what follows from it."""

from corollary.documents.types.function_types import (
    ANY,
    Child,
    FunctionType,
    Grammar,
    Labels,
    Production,
)

__all__ = ["ANY", "Child", "FunctionType", "Grammar", "Labels", "Production"]
