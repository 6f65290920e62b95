"""Commands that a server runs for the command line, so that it prints what it always prints.

The command line of the same user asks over the private socket, from elsewhere with a token. What a
command prints is computed here, by the same code; files are read by the client.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar

from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole, Principal
from corollary.database.database import state_of
from corollary.errors import InputError
from corollary.registry import EXTENSIONS
from corollary.serve.answers import Answer
from corollary.serve.command_names import OWNER_COMMANDS, READING_COMMANDS, WRITING_COMMANDS
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.requests import OwnerRequest, Request


@dataclass(frozen=True, slots=True)
class CommandRequest(Request):
    """What a command of the command line prints."""

    command: Annotated[str, "Its name, such as `query`."]
    options: Annotated[Mapping[str, Any], "Its arguments and options, as texts, by name."]
    program: Annotated[str, "What the command line is called in messages."] = "corollary"
    width: Annotated[int, "The number of characters in a line of the terminal."] = 100
    is_terminal: Annotated[bool, "Whether notes go to a terminal."] = False
    files: Annotated[
        Mapping[str, Any],
        "What the client has read of the files that options name: for `edge=new.csv` of `insert` "
        "or `delete` the rows, an Arrow stream in base64; for `changes` its lines.",
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WritingCommandRequest(CommandRequest):
    """What a command that changes something, or tries it out, prints."""

    role: ClassVar[AccessRole] = AccessRole.WRITE
    is_write: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class DeclarationsRequest(OwnerRequest):
    """The columns of base relations, for a client that reads files for them."""

    relations: Annotated[tuple[str, ...], "Their names."]


def answer_command(context: HandlerContext, who: Principal, request: CommandRequest) -> Answer:
    """Run a command; return what it prints, and its status.

    Raises:
        InputError: `C1641`, there is no such command here, or it has no such option.
    """
    known = WRITING_COMMANDS if request.is_write else READING_COMMANDS
    if request.command not in known:
        raise InputError.of(
            "C1641",
            f"The server does not run the command `{request.command}`.",
            None,
            f"it runs {', '.join(f'`{each}`' for each in known)}; others need the warehouse itself",
        )
    reader = None
    if who.role is AccessRole.READ:
        reader = who.name
        if request.command in OWNER_COMMANDS:
            context.owned(who, f"ask for `{request.command}`")
    document = EXTENSIONS.run_command(context.database, reader, request)
    return Answer.of(context.commit, document)


def answer_declarations(
    context: HandlerContext, who: Principal, request: DeclarationsRequest
) -> Answer:
    """Return the columns of base relations.

    Raises:
        InputError: one does not exist, or cannot be written to.
    """
    state = state_of(context.owned(who, "write"))
    found = []
    for name in request.relations:
        relation = state.writable_relation(name)
        types = [each.as_json for each in relation.types]
        found.append({"relation": name, "columns": list(relation.columns), "types": types})
    return Answer.of(context.commit, {"relations": found})
