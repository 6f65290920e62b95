"""`corollary advise`."""

import click

from corollary.cli.commands.advise.options import AdviseOptions
from corollary.cli.databases import open_warehouse
from corollary.cli.options import OutputOptions
from corollary.cli.parameters import family, functors


@click.command()
@click.argument("programs", metavar="PROGRAM...|WAREHOUSE", nargs=-1)
@family("options", AdviseOptions)
@functors
@family("output", OutputOptions)
def command(programs: tuple[str, ...], options: AdviseOptions, output: OutputOptions) -> None:
    """Find views that are worth storing, and rewrite queries to use them.

    The advisor cuts the rules of a query into groups of literals that share few variables with the
    rest. A group is worth storing if it lowers the exponent of the query's time, and cannot become
    larger than the largest stored relation. Keys and .fd declarations make it see more; a wrong one
    gives bad advice, never wrong answers.

    Prints for each query the exponents, the rules before and after, and each view with its size,
    its cost and the reason. With a warehouse (--stats) or facts (-F), real sizes stand beside them.
    Nothing is changed without --apply, which makes one commit; --revert takes it back.

    \b
      corollary advise airline.dl --query view
      corollary advise airline.dl --query view --stats warehouse --updates services=1000/h
      corollary advise warehouse --keys                      what was asked, with real sizes
      corollary advise airline.dl --query view --apply warehouse --verify
      corollary advise --revert warehouse
      corollary advise --drop warehouse                      stored views that do not pay
      corollary advise warehouse --report advice.md          for a timer: what is new, what to drop
      corollary advise warehouse --queries-from log.sql --sql spark
    """
    place = options.revert or options.drop
    if bool(programs) == bool(place):
        raise click.UsageError(
            "name a program or a warehouse to advise on; or none, and --revert or --drop"
        )
    with output.reporting() as console:
        from corollary.cli.commands.advise.advice import advise_on, revert_advice, weigh_views
        from corollary.database.options import DatabaseOptions

        if place is None:
            advise_on(programs, options, output, console)
            return
        settings = DatabaseOptions(options.engine, limits=options.limits)
        with open_warehouse(place, console, settings) as database:
            if options.revert is not None:
                revert_advice(database, output)
            else:
                weigh_views(database, options, output)
