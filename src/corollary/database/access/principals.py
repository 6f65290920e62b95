"""Who asks: a name and a role."""

from dataclasses import dataclass
from enum import StrEnum


class AccessRole(StrEnum):
    """What somebody may do; each role may do all that those before it may."""

    READ = "read"
    """Reads what was granted to the name."""
    WRITE = "write"
    """Reads everything, changes data."""
    ADMIN = "admin"
    """Does everything, also changes the program."""

    def includes(self, other: "AccessRole") -> bool:
        """Return whether this role may do what another one may.

        >>> AccessRole.WRITE.includes(AccessRole.READ), AccessRole.WRITE.includes(AccessRole.ADMIN)
        (True, False)
        """
        return ORDER.index(self) >= ORDER.index(other)


ORDER = tuple(AccessRole)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sends a request.

    Attributes:
        name: that of the token; for the role `read`, grants are looked up under it.
        role: what it may do.
    """

    name: str
    role: AccessRole


OWNER = Principal("owner", AccessRole.ADMIN)
"""Who runs the server, and could open the files of the warehouse as well."""
