"""Types of functions and documents: what their trees look like, and what follows from it."""

from corollary.documents.types.function_types import (
    ANY,
    Child,
    FunctionType,
    Grammar,
    Labels,
    Production,
)
from corollary.documents.types.read_type import read_type

__all__ = ["ANY", "Child", "FunctionType", "Grammar", "Labels", "Production", "read_type"]
