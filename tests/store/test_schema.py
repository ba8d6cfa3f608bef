"""The schema: models and migrations agree, old stores are upgraded, newer ones are refused.

The expected content comes from stores that are built both ways, and from a store to which a later revision is added.
"""

import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import MetaData, inspect

from swsearch import folders
from swsearch.errors import SchemaOutdated
from swsearch.store import connections, rows, schema
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query


def described(connection):
    """Return the inspector's description of all tables and views, by name."""
    inspector = inspect(connection)
    tables = {view: inspector.get_view_definition(view) for view in inspector.get_view_names()}
    for table in sorted(inspector.get_table_names()):
        tables[table] = {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"], column.get("autoincrement"))
                for column in inspector.get_columns(table)
            },
            "order": [column["name"] for column in inspector.get_columns(table)],
            "primary key": inspector.get_pk_constraint(table)["constrained_columns"],
            "foreign keys": inspector.get_foreign_keys(table),
            "unique": inspector.get_unique_constraints(table),
            "indexes": inspector.get_indexes(table),
        }
    return tables


def test_migrations_build_what_the_models_describe(target):
    """Source: a store built by the migrations alone, compared with one built from the models."""
    address = connections.Address.of(target)
    with closing(connections.connections_of(address)) as opened, opened.for_alembic() as connection:
        schema.migrate(connection)
        migrated = described(connection)
    with closing(connections.connections_of(address)) as opened, opened.for_alembic() as connection:
        connection.exec_driver_sql("DROP VIEW blast6")
        reflected = MetaData()
        reflected.reflect(connection)
        reflected.drop_all(connection)
    Store(target, create=True).close()
    with closing(connections.connections_of(address)) as opened, opened.for_alembic() as connection:
        assert described(connection) == migrated
        assert connection.exec_driver_sql("SELECT version_num FROM swsearch_schema").scalars().all() == [rows.SCHEMA]
    service = {"searches", "search_queries", "owners", "usage", "workers", "tokens", "links"}
    assert set(migrated) == {"blast6", "failures", "hits", "queries", "runs", "swsearch_schema", *service}


def test_the_models_name_the_newest_revision():
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(schema.alembic_config())
    assert script.get_current_head() == rows.SCHEMA
    for revision in script.walk_revisions():
        assert revision.doc, f"{revision.revision} does not say why"


def test_an_old_schema_is_met_with_the_command_that_upgrades_it(target, later_revision):
    """The program's current store becomes an old one, because a next revision is added to the real ones."""
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        store.results.add(run_id, make_query(0))
    with later_revision() as later:
        with pytest.raises(SchemaOutdated, match=r"`swsearch runs upgrade --store .*` brings it up to date") as caught:
            Store(target)
        assert "\n" not in str(caught.value)
        assert (caught.value.found, caught.value.needed) == (rows.SCHEMA, later)
        assert schema.upgrade(target) == (rows.SCHEMA, later)
        assert schema.upgrade(target) == (later, later)
        with Store(target) as store:
            assert list(store.results.queries(run_id)) == [make_query(0)]
    # For the current program, that store is a newer one.
    with pytest.raises(SchemaOutdated, match="a newer swsearch wrote it; install that version or a later one"):
        Store(target)
    with pytest.raises(SchemaOutdated, match="a newer swsearch wrote it"):
        schema.upgrade(target)


def test_a_failed_upgrade_changes_nothing(target, later_revision):
    Store(target, create=True).close()
    with later_revision("    raise RuntimeError('stop')\n"), pytest.raises(RuntimeError, match="stop"):
        schema.upgrade(target)
    with Store(target) as store:
        store.runs.start(RUN)


def test_hits_have_a_value_for_each_column():
    columns, _ = rows.reader_of("hits", ())
    assert sorted(columns.split(", ")) == sorted(rows.HIT_COLUMNS)


def test_a_sqlite_store_is_in_wal_mode(tmp_path):
    path = tmp_path / "hits.sqlite"
    Store(path, create=True).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_resources_are_found_and_missing_ones_named():
    from swsearch.errors import SwSearchError

    assert (folders.resource_folder("migrations") / "env.py").is_file()
    assert folders.resource_folder("cuda").is_dir()
    with pytest.raises(SwSearchError, match="lacks its folder _nothing; install swsearch again"):
        folders.resource_folder("nothing")
