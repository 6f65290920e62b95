"""Who asks, and on whose behalf a transaction is made: a name and a role."""

from enum import StrEnum

from corollary.data_class import dataclass
from corollary.errors import AccessError


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

    def require(self, role: AccessRole, what: str) -> None:
        """Refuse what needs a higher role.

        Raises:
            AccessError: `C1601`.
        """
        if not self.role.includes(role):
            raise AccessError.of(
                "C1601",
                f"`{self.name}` has the role `{self.role}`, and cannot {what}.",
                None,
                f"ask with a token of the role `{role}`: "
                f"`corollary token add W NAME --role {role}`",
            )


OWNER = Principal("owner", AccessRole.ADMIN)
"""Who has opened the files of the warehouse, or runs the server and could do so as well."""
NOBODY = Principal("nobody", AccessRole.READ)
"""On whose behalf a server acts between requests."""
