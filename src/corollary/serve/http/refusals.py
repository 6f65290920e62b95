"""Requests that are refused before anything is asked of the warehouse."""

from corollary.database.access.principals import AccessRole, Principal
from corollary.serve.answers import ServiceError


def not_signed_in() -> ServiceError:
    """Return the error of a request without a token or a session that is valid."""
    return ServiceError.of(
        401,
        "C1622",
        "The request has no valid token.",
        "send `Authorization: Bearer TOKEN`; `corollary token add W NAME --role read` makes one",
    )


def wrong_key() -> ServiceError:
    """Return the error of a key that opens no session."""
    return ServiceError.of(
        401,
        "C1622",
        "This key or token opens no session: it was used, has ended, or was never valid.",
        "`corollary token link W` prints a new address; or sign in with a token",
    )


def role_needed(who: Principal, role: AccessRole) -> ServiceError:
    """Return the error of a request that needs another role."""
    return ServiceError.of(
        403,
        "C1623",
        f"`{who.name}` has the role `{who.role}`, and may not do this.",
        f"ask with a token of the role `{role}`: `corollary token add W NAME --role {role}`",
    )


def agent_write() -> ServiceError:
    """Return the error of a change by an agent, where agents only try changes out."""
    return ServiceError.of(
        403,
        "C1645",
        "Agents change nothing here: they only try changes out.",
        "call `apply` with `dry_run`, or let them: `corollary serve W --allow-agent-writes`",
    )


def foreign_page() -> ServiceError:
    """Return the error of a change that another site may have made a browser send."""
    return ServiceError.of(
        403,
        "C1624",
        "The request comes with a session, but not from a page of this server.",
        "send the headers `Origin` and `X-Corollary`, as the page does, or use a token",
    )


def foreign_host(name: str) -> ServiceError:
    """Return the error of a request to another host."""
    return ServiceError.of(
        421,
        "C1625",
        f"This server is not called `{name[:200]}`.",
        "start it with `--allow-host NAME` for each name that it has",
    )


def several_hosts() -> ServiceError:
    """Return the error of a request that calls the server by several names."""
    return ServiceError.of(
        400, "C1638", "The request has several `Host` headers.", "send one of them"
    )


def large_body(limit: int) -> ServiceError:
    """Return the error of a body that is too large."""
    return ServiceError.of(
        413,
        "C1626",
        f"The body of the request has more than {limit:,} bytes.",
        "split the changes, or let the server read them as a source",
        exit_code=5,
    )


def many_values(limit: int) -> ServiceError:
    """Return the error of JSON with too many values."""
    return ServiceError.of(
        413,
        "C1626",
        f"The JSON of the request has more than {limit:,} values.",
        "send less at once; changes may be lines of JSON, one for each",
    )


def slow_body(seconds: float) -> ServiceError:
    """Return the error of a body that does not come."""
    return ServiceError.of(
        408,
        "C1627",
        f"The body of the request was not there after {seconds:g} seconds.",
        "send it at once",
    )


def not_json(problem: str) -> ServiceError:
    """Return the error of a body that is not the JSON object that is expected."""
    return ServiceError.of(
        400,
        "C1628",
        f"The body of the request is not a JSON object: {problem}.",
        '`/openapi.json` describes it; such as `{"goal": "link(x, y)"}`',
    )


def no_such_path(path: str) -> ServiceError:
    """Return the error of a path that there is not."""
    text = f"There is nothing at `{path[:200]}`."
    return ServiceError.of(404, "C1629", text, "`/openapi.json` lists the paths")


def wrong_method(method: str, path: str) -> ServiceError:
    """Return the error of another method."""
    return ServiceError.of(
        405, "C1630", f"`{path[:200]}` has no method {method}.", "`/openapi.json` lists the methods"
    )
