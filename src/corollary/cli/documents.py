"""`corollary documents`: the group of its commands."""

import click

from corollary.cli.documents_match import command as match
from corollary.cli.documents_watch import command as watch
from corollary.cli.documents_xquery import command as xquery


@click.group()
def command() -> None:
    """Tree patterns over documents that streams still write into.

    A document is a tree in XML, JSON or as a term such as 'r[a !f]'; `!f` (in XML <?call f?>) is a
    function, beside which a stream inserts further trees. A query such as '/r[a]/b$x' is true,
    false for ever, or not true yet; its answers are sure, or possible. Behind `key $x` stand
    variables that no two answers have alike: what would only give such an answer is dropped.

    \b
      corollary documents match --doc 'r[a !f]' --query '/r[a][b$x]'
      corollary documents match --doc orders.xml --query '//order[paid]/id/*$o' --update f=new.xml
      corollary documents match --doc 'r[a[1] b[7 !f]]' --query '/r[a/*$x][b/*$y] key $x' --gc
      corollary documents xquery --query '/r[a][.//b]'
    """


command.add_command(match, "match")
command.add_command(watch, "watch")
command.add_command(xquery, "xquery")
