"""SQLAlchemy as a client: its dialect of PostgreSQL, reflection, Core and ORM."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Session

from support.serve.pg_endpoint import Endpoint


@pytest.fixture(scope="module")
def engine(endpoint: Endpoint) -> Iterator[sa.Engine]:
    """An engine with a pool of one connection."""
    arguments = endpoint.arguments()
    url = sa.URL.create(
        "postgresql+psycopg",
        username="alice",
        password=arguments["password"],
        host="127.0.0.1",
        port=endpoint.port,
        database="wh",
    )
    engine = sa.create_engine(url, pool_size=1)
    yield engine
    engine.dispose()


def test_reflection(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert set(inspector.get_table_names()) == {"edge", "person", "sample", "scratch"}
    assert inspector.get_view_names() == ["adult"]
    assert "path" in inspector.get_materialized_view_names()
    assert inspector.get_check_constraints("person") == []
    assert inspector.get_unique_constraints("person") == []
    assert inspector.get_indexes("person") == []
    assert inspector.get_multi_pk_constraint()[None, "person"]["constrained_columns"] == ["id"]
    assert "path" in inspector.get_view_definition("path")
    assert inspector.get_pk_constraint("person")["constrained_columns"] == ["id"]
    assert inspector.get_foreign_keys("person") == []
    metadata = sa.MetaData()
    metadata.reflect(engine, views=True)
    person = metadata.tables["person"]
    assert [column.name for column in person.primary_key] == ["id"]
    assert not person.c.name.nullable
    assert person.c.born.nullable
    assert isinstance(metadata.tables["sample"].c.m.type, sa.Numeric)
    assert metadata.tables["sample"].c.m.type.scale == 2
    assert isinstance(metadata.tables["sample"].c.t.type, sa.DateTime)


def test_core_and_orm(engine: sa.Engine) -> None:
    class Base(DeclarativeBase):
        pass

    class Person(Base):
        __tablename__ = "person"
        id = sa.Column(sa.BigInteger, primary_key=True)
        name = sa.Column(sa.String)
        born = sa.Column(sa.Date)

    with Session(engine) as session:
        session.add(Person(id=21, name="Dora", born=date(1990, 1, 2)))
        session.add(Person(id=22, name="Emil", born=None))
        session.commit()
        found = session.scalars(sa.select(Person).where(Person.born < date(1995, 1, 1)))
        assert [each.name for each in found.all()] == ["Ann", "Dora"]
        counted = sa.select(sa.func.count()).where(Person.id.in_([21, 22]))
        assert session.scalar(counted) == 2
        session.rollback()
        session.execute(sa.delete(Person).where(Person.id > 20))
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Person)) == 2
