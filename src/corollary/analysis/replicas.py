"""Replicas: what `.output p(IO=…)` keeps in step with a relation outside of the warehouse.

| `IO`         | parameters             | is                                                    |
|--------------|------------------------|-------------------------------------------------------|
| `postgresql` | `connection`, `table`  | a table of PostgreSQL                                 |
| `kafka`      | `connection`, `topic`, `envelope` | a topic with what comes and goes           |
| `iceberg`    | `catalog`, `table`     | a table of Iceberg, in a catalog that pyiceberg knows |

A *connection* is a name: the operator of a process gives its URL in the environment, so that no
program holds an address or a secret, and nobody who may change a program chooses where data goes.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from corollary.core.program import REFRESH_PARAMETER, Directive, Program
from corollary.data_class import dataclass

CONNECTION_PREFIX = "COROLLARY_CONNECTION_"
"""The variable with the URL of a connection is this and its name in capitals."""
_EXAMPLE = f"`connection=shop`, and give its URL in the variable `{CONNECTION_PREFIX}SHOP`"
CONNECTION_NAME = re.compile("[A-Za-z][A-Za-z0-9_]*")


class ReplicaKind(StrEnum):
    """The kinds of replicas, as `IO` names them."""

    POSTGRESQL = "postgresql"
    KAFKA = "kafka"
    ICEBERG = "iceberg"


PARAMETERS = {
    ReplicaKind.POSTGRESQL: ("connection", "table"),
    ReplicaKind.KAFKA: ("connection", "topic", "envelope"),
    ReplicaKind.ICEBERG: ("catalog", "table"),
}
"""The parameters of each kind, besides `IO` and `refresh`; the first one has to be given."""
PROPERTIES = {
    f"corollary.{name.lower()}": name
    for name in ("IO", *dict.fromkeys(each for names in PARAMETERS.values() for each in names))
}
"""The parameters by the properties of a view in SQL, in small letters."""
CHOICES = {"envelope": ("changes", "debezium")}
"""The values of parameters that have only these; the first one is the default."""


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """A replica as the program declares it.

    Attributes:
        location: the name of the connection or catalog.
        name: of the table or topic there.
        option: the value of its parameter with choices, if it has one.
        key: the positions of the columns of the relation's key.
    """

    relation: str
    kind: ReplicaKind
    location: str
    name: str
    option: str = ""
    key: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.location, self.name)))


def is_replica(directive: Directive) -> bool:
    """Whether an `.output` is a replica, and not a table or a file of ours."""
    return directive.name == "output" and directive.parameter("IO") in set(ReplicaKind)


def known_parameters(directive: Directive) -> tuple[str, ...]:
    """Return the parameters that the `.output` of a replica may have."""
    return ("IO", *PARAMETERS[ReplicaKind(directive.parameter("IO"))], REFRESH_PARAMETER)


def parameter_faults(directive: Directive) -> Iterable[tuple[str, str]]:
    """Yield what is wrong with the parameters of a replica, each with what to write instead."""
    kind = ReplicaKind(directive.parameter("IO"))
    required = PARAMETERS[kind][0]
    if not directive.parameter(required):
        is_catalog = required == "catalog"
        cure = "`catalog=lake`, a catalog that pyiceberg is configured for"
        yield f"`IO={kind}` needs `{required}`", cure if is_catalog else _EXAMPLE
    for name, value in directive.parameters:
        if name in CHOICES and value not in CHOICES[name]:
            yield (
                f"`{name}={value}` is not a value for `{name}`",
                " or ".join(f"`{each}`" for each in CHOICES[name]),
            )
        if name == "connection" and value and not CONNECTION_NAME.fullmatch(value):
            yield (
                f"`{name}` is a name, and not an address",
                _EXAMPLE,
            )


def replica_specs(program: Program) -> list[ReplicaSpec]:
    """Return the replicas that a program declares, each once."""
    keys = {
        each.name: tuple([column.name for column in each.columns].index(name) for name in each.key)
        for each in program.declarations
    }
    found = {}
    for each in program.directives:
        if is_replica(each):
            kind = ReplicaKind(each.parameter("IO"))
            location, *names = PARAMETERS[kind]
            option = next((name for name in names if name in CHOICES), "")
            spec = ReplicaSpec(
                each.relation,
                kind,
                each.parameter(location),
                "" if names[0] in CHOICES else each.parameter(names[0], each.relation),
                each.parameter(option, CHOICES[option][0]) if option else "",
                keys.get(each.relation, ()),
            )
            found[str(spec)] = spec
    return list(found.values())
