"""Who asks: a name and a role."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do; each role may do all that those before it may."""

    READ = "read"
    """Reads what was granted to the name."""
    WRITE = "write"
    """Reads everything, changes data."""
    ADMIN = "admin"
    """Does everything, also changes the program."""

    def includes(self, other: "Role") -> bool:
        """Return whether this role may do what another one may.

        >>> Role.WRITE.includes(Role.READ), Role.WRITE.includes(Role.ADMIN)
        (True, False)
        """
        return ORDER.index(self) >= ORDER.index(other)


ORDER = tuple(Role)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sends a request.

    Attributes:
        name: that of the token; for the role `read`, grants are looked up under it.
        role: what it may do.
    """

    name: str
    role: Role


OWNER = Principal("owner", Role.ADMIN)
"""Who runs the server, and could open the files of the warehouse as well."""
