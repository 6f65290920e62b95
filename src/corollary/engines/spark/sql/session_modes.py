"""Settings of the private session by the size of what a query reads."""

from typing import TYPE_CHECKING

from corollary.engines.spark.session import SHUFFLE_PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VAST = 2_000_000
"""From so many tuples on, Spark may look at sizes on the way, which splits a query into jobs."""

ADAPTIVE = "spark.sql.adaptive.enabled"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
EXCLUDED = "spark.sql.optimizer.excludedRules"

FACTORY = "spark.sql.codegen.factoryMode"
COMPILED = "FALLBACK"

QUICK = {
    ADAPTIVE: "false",
    "spark.sql.codegen.wholeStage": "false",
    FACTORY: "NO_CODEGEN",
    BROADCAST: "-1",
    EXCLUDED: "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin",
    SHUFFLE_PARTITIONS: "1",
}
"""For small inputs: compiling a query takes longer than running it, and a broadcast is a job.

The rule would move semi-joins to where Spark does not know that all rows are in one part.
"""

BULKY = {ADAPTIVE: "false", "spark.sql.codegen.wholeStage": "true", FACTORY: COMPILED}
"""For large ones; how much is broadcast and in how many parts it is shuffled is the session's."""


class Modes:
    """Sets the mode that fits a query, where it is another one than before."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        own = {name: session.conf.get(name) or "" for name in (BROADCAST, SHUFFLE_PARTITIONS)}
        self._bulky = {**BULKY, **own, EXCLUDED: session.conf.get(EXCLUDED, "") or ""}
        self._vast = {**self._bulky, ADAPTIVE: "true"}
        self._now: dict[str, str] = {}
        self._is_resting = False

    def set_for(self, inputs: int, *, is_small: bool) -> None:
        """Get ready for a query that reads so many tuples."""
        large = self._bulky if inputs <= VAST else self._vast
        mode = QUICK if is_small else large
        if mode is not self._now:
            for name, value in mode.items():
                self._session.conf.set(name, value)
            self._now = mode
        elif self._is_resting:
            self._session.conf.set(FACTORY, mode[FACTORY])
        self._is_resting = False

    def rest(self) -> None:
        """A query has ended: set what others can bear.

        For Spark the last session that was made is the active one of a thread, whose settings it
        takes for some things that a user does in another session.
        """
        if self._now.get(FACTORY, COMPILED) != COMPILED:
            self._session.conf.set(FACTORY, COMPILED)
            self._is_resting = True
