"""Readers that hand over Arrow: ADBC's drivers and connectorx."""

from __future__ import annotations

from collections.abc import Iterator

from readers_roles import Columns, Question, main, select

ROWS = 50_000


def adbc_postgresql(question: Question) -> Iterator[Columns]:
    """ADBC's driver for PostgreSQL, which reads COPY in its binary form."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(question.url) as connection, connection.cursor() as cursor:
        cursor.execute(select(question))
        for batch in cursor.fetch_record_batch():
            yield batch.columns


def adbc_sqlite(question: Question) -> Iterator[Columns]:
    """ADBC's driver for SQLite."""
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(question.url.removeprefix("sqlite:///")) as connection, connection.cursor() as cursor:
        cursor.execute(select(question))
        for batch in cursor.fetch_record_batch():
            yield batch.columns


def connectorx(question: Question) -> Iterator[Columns]:
    """connectorx, as a stream of batches, with the protocol that it takes by default."""
    import connectorx as cx

    url = question.url.replace("sqlite:///", "sqlite://", 1).replace("mariadb://", "mysql://", 1)
    statement = select(question, "`" if url.startswith("mysql") else '"')
    for batch in cx.read_sql(url, statement, return_type="arrow_stream", batch_size=ROWS):
        yield batch.columns


main({"ADBC PostgreSQL": adbc_postgresql, "ADBC SQLite": adbc_sqlite, "connectorx": connectorx})
