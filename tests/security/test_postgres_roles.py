"""The role that appends to a tape in PostgreSQL cannot rewrite it, and another home cannot see it."""

import asyncio

import psycopg
import pytest

from hookline.errors import TapeDenied
from hookline.tape.postgres.roles import admit, expel, standing_of
from hookline.tape.postgres.status import broken_entry
from hookline.tape.postgres.store import PostgresStore

from .. import commandline, postgres
from ..tables import each_row
from ..tape.conftest import chain, note

PLACES = 2**32
TABLES = ("entries", "sessions", "words", "indexed", "home", "versions", "members", "channels")
ADDED = "INSERT INTO {s}.entries (seq, time, jump, id, parent_id, kind, meta, payload) VALUES "


class Tape:
    """A schema with an owner, a role that appends, a neighbour's schema, and a stranger."""

    def __init__(self):
        self.schema, self.other = postgres.new_schema(), postgres.new_schema()
        self.owner, self.app = asyncio.run(postgres.restricted(self.schema, parts=True))
        _, self.neighbour = asyncio.run(postgres.restricted(self.other))
        self.stranger = f"{self.schema}_stranger"
        self.entries = chain(5)
        asyncio.run(self._fill())
        postgres.execute(
            f"CREATE ROLE {self.stranger} LOGIN",
            f"GRANT ALL ON SCHEMA {self.schema} TO {self.stranger}",
            f"GRANT ALL ON ALL TABLES IN SCHEMA {self.schema} TO {self.stranger}",
            f"CREATE SCHEMA {self.schema}_evil AUTHORIZATION {self.schema}_app",
        )

    async def _fill(self):
        store = await PostgresStore.open(self.app, schema=self.schema, home="h")
        await store.append(self.entries)
        await store.append([note("hello", session="s2")])
        await store.search("number")
        await store.close()

    def run(self, url, *statements):
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                done = connection.execute(statement.replace("{s}", self.schema))
            return done.fetchall() if done.description else done.rowcount

    def all(self):
        return postgres.fetch(f"SELECT * FROM {self.schema}.entries ORDER BY seq") + postgres.fetch(
            f"SELECT * FROM {self.schema}.sessions ORDER BY number"
        )

    def drop(self):
        postgres.execute(
            f"DROP SCHEMA {self.schema}_evil CASCADE",
            f"DROP OWNED BY {self.stranger} CASCADE",
            f"DROP ROLE {self.stranger}",
        )
        postgres.drop_roles(self.schema)
        postgres.drop_roles(self.other)


@pytest.fixture(scope="module")
def tape():
    made = Tape()
    yield made
    made.drop()


REWRITING = [
    *(
        f"UPDATE {{s}}.entries SET {column} = {column}"
        for column in ("seq", "time", "jump", "id", "parent_id", "kind", "meta", "payload", "hash")
    ),
    "UPDATE {s}.entries SET payload = '{}' WHERE seq = 4294967296",
    "UPDATE {s}.sessions SET id = 'renamed'",
    "UPDATE {s}.sessions SET number = number + 7",
    *(f"DELETE FROM {{s}}.{table}" for table in ("entries", "sessions", "words", "home", "members")),
    *(f"TRUNCATE {{s}}.{table} CASCADE" for table in TABLES),
    *(f"DROP TABLE {{s}}.{table} CASCADE" for table in TABLES),
    *(f"ALTER TABLE {{s}}.{table} DISABLE ROW LEVEL SECURITY" for table in TABLES),
    *(f"ALTER TABLE {{s}}.{table} DISABLE TRIGGER ALL" for table in TABLES),
    *(f"ALTER TABLE {{s}}.{table} OWNER TO CURRENT_USER" for table in TABLES),
    "ALTER TABLE {s}.entries RENAME TO old",
    "ALTER TABLE {s}.entries DROP COLUMN hash",
    "ALTER TABLE {s}.entries ALTER payload SET DEFAULT 'x'",
    "ALTER TABLE {s}.entries ADD CHECK (false) NOT VALID",
    "ALTER TABLE {s}.entries INHERIT {s}.words",
    "ALTER SCHEMA {s} RENAME TO stolen",
    "ALTER SCHEMA {s} OWNER TO CURRENT_USER",
    "DROP SCHEMA {s} CASCADE",
    "DROP TRIGGER entries_kept ON {s}.entries",
    "DROP TRIGGER entries_link ON {s}.entries",
    "DROP FUNCTION {s}.hookline_refuse() CASCADE",
    "DROP POLICY hookline_SELECT ON {s}.entries",
    "CREATE POLICY mine ON {s}.entries FOR UPDATE TO PUBLIC USING (true)",
    "ALTER POLICY hookline_SELECT ON {s}.entries TO PUBLIC",
    "CREATE TABLE {s}.mine (x int)",
    "CREATE VIEW {s}.mine AS SELECT 1",
    "CREATE FUNCTION {s}.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    (
        "CREATE OR REPLACE FUNCTION {s}.hookline_refuse() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN RETURN NEW; END'"
    ),
    (
        "CREATE OR REPLACE FUNCTION {s}.hookline_link() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN RETURN NEW; END'"
    ),
    "CREATE RULE r AS ON INSERT TO {s}.entries DO INSTEAD NOTHING",
    "CREATE RULE r AS ON SELECT TO {s}.words DO INSTEAD SELECT * FROM {s}.words",
    "CREATE TRIGGER t BEFORE INSERT ON {s}.entries EXECUTE FUNCTION {s}.hookline_refuse()",
    "CREATE INDEX i ON {s}.entries (kind)",
    "CREATE TABLE {s}_evil.child (x int REFERENCES {s}.entries (seq) ON DELETE CASCADE)",
    "CREATE TABLE {s}_evil.kid () INHERITS ({s}.entries)",
    "GRANT UPDATE ON {s}.entries TO CURRENT_USER; UPDATE {s}.entries SET kind = 'x'",
    "GRANT ALL ON SCHEMA {s} TO PUBLIC; CREATE TABLE {s}.mine (x int)",
    "SET ROLE {s}_owner",
    "SET SESSION AUTHORIZATION {s}_owner",
    "SET session_replication_role = replica",
    "SET row_security = off; SELECT * FROM {s}.entries FOR UPDATE",
    "ALTER ROLE CURRENT_USER BYPASSRLS",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "ALTER ROLE {s}_owner PASSWORD 'x'",
    "GRANT {s}_owner TO CURRENT_USER",
    "REASSIGN OWNED BY {s}_owner TO CURRENT_USER",
    "SELECT * FROM {s}.entries FOR UPDATE",
    "SELECT * FROM {s}.sessions FOR SHARE",
    "DO $$ BEGIN LOCK TABLE {s}.entries IN ACCESS EXCLUSIVE MODE; END $$",
    "REINDEX TABLE {s}.entries",
    "CLUSTER {s}.entries USING entries_place",
    "COPY {s}.members FROM PROGRAM 'echo 10'",
    "COPY {s}.entries TO '/tmp/stolen'",
    "INSERT INTO {s}.members (role) VALUES ('pg_database_owner')",
    "INSERT INTO {s}.versions VALUES ('tape', 9)",
    "INSERT INTO {s}.channels (key) VALUES ('known')",
    "UPDATE {s}.versions SET version = 9",
    "UPDATE {s}.home SET id = 'mine'",
    "UPDATE {s}.channels SET key = 'known'",
    "UPDATE {s}.members SET role = 10",
    "SELECT setval('{s}.sessions_number_seq', 1)",
    "INSERT INTO {s}.sessions (id) VALUES ('s1') ON CONFLICT (id) DO UPDATE SET id = 'x'",
    "INSERT INTO {s}.sessions (number, id) VALUES (99, 's99')",
    "MERGE INTO {s}.entries e USING {s}.sessions s ON true WHEN MATCHED THEN DELETE",
    "MERGE INTO {s}.entries e USING {s}.sessions s ON true WHEN MATCHED THEN UPDATE SET kind = 'x'",
    "WITH gone AS (DELETE FROM {s}.entries RETURNING *) SELECT * FROM gone",
    "DO $$ BEGIN DELETE FROM {s}.entries; END $$",
    "SELECT lo_import('/etc/passwd')",
    # An entry that is not the next of its session.
    ADDED + "(99 * 4294967296::bigint, 0, false, 'x', NULL, 'note', '{}', '{}')",
    ADDED + "(4294967296 + 7, 0, true, 'x', NULL, 'note', '{}', '{}')",
    ADDED + "(4294967296 + 6, 0, false, 'x', NULL, 'note', '{}', '{}')",
    ADDED + "(-4294967296, 0, false, 'x', NULL, 'note', '{}', '{}')",
    ADDED + "(-1, 0, true, 'x', NULL, 'note', '{}', '{}')",
    ADDED + "(0, 0, false, 'x', NULL, 'note', '{}', '{}')",
    ADDED + "(4294967296, 0, false, 'x', NULL, 'note', '{}', '{}')",
    ADDED + "(4294967296 + 2, 0, true, 'x', NULL, 'note', '{}', '{}') ON CONFLICT (seq) DO UPDATE "
    "SET payload = 'x'",
    # An entry that misstates what it follows, or brings its own hash.
    ADDED + "(4294967296 + 5, 0, false, 'x', NULL, 'note', '{}', '{}')",
    ADDED + "(4294967296 + 5, 0, false, 'x', 'elsewhere', 'note', '{}', '{}')",
    (
        "INSERT INTO {s}.entries (seq, time, jump, id, kind, meta, payload, hash) "
        "VALUES (4294967296 + 5, 0, true, 'x', 'note', '{}', '{}', '')"
    ),
]


@each_row("statement", REWRITING)
def test_the_role_that_appends_cannot_rewrite(tape, statement):
    before = tape.all()
    with pytest.raises(psycopg.Error) as raised:
        tape.run(tape.app, statement)
    assert raised.value.sqlstate in ("42501", "23514", "23505", "0A000", "42809"), raised.value
    assert tape.all() == before


@pytest.mark.parametrize("place", [4294967296 + 7, 99 * 4294967296])
def test_operators_of_its_own_do_not_help_it_past_the_triggers(tape, place):
    evil = f"{tape.schema}_evil"
    lie = "LANGUAGE sql IMMUTABLE AS 'SELECT true'"
    with pytest.raises(psycopg.errors.CheckViolation):
        tape.run(
            tape.app,
            f"CREATE OR REPLACE FUNCTION {evil}.yes(bigint, bigint) RETURNS boolean {lie}",
            f"DROP OPERATOR IF EXISTS {evil}.= (bigint, bigint)",
            f"CREATE OPERATOR {evil}.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {evil}.yes)",
            "CREATE TEMP TABLE sessions (number bigint, id text)",
            "CREATE TEMP TABLE entries (seq bigint, id text, hash bytea)",
            "INSERT INTO pg_temp.sessions SELECT 99, 'x'",
            f"SET search_path = {evil}, pg_temp, pg_catalog, {tape.schema}",
            ADDED + f"({place}, 0, true, 'x', NULL, 'note', '{{}}', '{{}}')",
        )


@each_row(
    "statement",
    [
        "UPDATE {s}.entries SET kind = 'x'",
        "DELETE FROM {s}.entries",
        "TRUNCATE {s}.entries",
        "UPDATE {s}.sessions SET id = 'x'",
        "DELETE FROM {s}.sessions",
        "TRUNCATE {s}.sessions",
    ],
)
@each_row("role", ["owner", "superuser"])
def test_triggers_refuse_even_the_owner(tape, statement, role):
    before = tape.all()
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only appended to"):
        tape.run(tape.owner if role == "owner" else postgres.url(), statement)
    assert tape.all() == before


@each_row("table", [*TABLES, "inbox", "approval_grants", "trigger_events", "trace"])
def test_a_role_that_is_not_admitted_sees_no_row_whatever_it_was_granted(tape, table):
    url = postgres.url_for(tape.stranger)
    assert tape.run(url, f"SELECT count(*) FROM {{s}}.{table}") == [(0,)]
    assert tape.run(url, "SET hookline.system.home = 'h'", f"SELECT count(*) FROM {{s}}.{table}") == [
        (0,)
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {s}.sessions (id) VALUES ('theirs')",
        ADDED + "(4294967296 + 5, 0, true, 'x', NULL, 'note', '{}', '{}')",
        "INSERT INTO {s}.home (id, place) VALUES ('theirs', '')",
        "INSERT INTO {s}.members (role) VALUES (10)",
        "INSERT INTO {s}.orders (session_id) VALUES ('s1')",
        "INSERT INTO {s}.approval_grants VALUES (DEFAULT, 'g', '', 'h', 't', 'c', 's', '', 'w')",
    ],
)
def test_a_role_that_is_not_admitted_adds_no_row_whatever_it_was_granted(tape, statement):
    with pytest.raises(psycopg.Error) as raised:
        tape.run(postgres.url_for(tape.stranger), statement)
    assert raised.value.sqlstate in ("42501", "23514"), raised.value


@each_row("table", [*TABLES, "inbox", "approval_grants", "trigger_events", "trace"])
@each_row("doing", ["SELECT * FROM", "DELETE FROM", "TRUNCATE"])
def test_the_role_of_another_home_cannot_reach_a_table(tape, table, doing):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tape.run(tape.neighbour, f"{doing} {{s}}.{table}")


def test_a_role_that_reads_all_data_sees_no_row(tape):
    role = f"{tape.schema}_reader"
    postgres.execute(f"CREATE ROLE {role} LOGIN IN ROLE pg_read_all_data")
    try:
        assert tape.run(postgres.url_for(role), "SELECT count(*) FROM {s}.entries") == [(0,)]
    finally:
        postgres.execute(f"DROP ROLE {role}")


async def test_a_home_whose_role_is_not_admitted_is_told_so(tape):
    with pytest.raises(TapeDenied, match=r"not admitted.*hookline db grant ROLE"):
        await PostgresStore.open(postgres.url_for(tape.stranger), schema=tape.schema)


async def test_names_of_channels_are_not_to_be_guessed_from_another_schema(tape):
    ours = await PostgresStore.open(tape.app, schema=tape.schema)
    theirs = await PostgresStore.open(tape.neighbour, schema=tape.other)
    assert len(ours.channel_key) == 32
    assert ours.channel_key != theirs.channel_key
    await ours.close()
    await theirs.close()


# --- what an owner rewrites is found ---


@pytest.fixture
def own():
    made = Tape()
    yield made
    made.drop()


TAMPERING = {
    "payload": 'UPDATE {s}.entries SET payload = \'{"text":"forged"}\' WHERE seq % 4294967296 = 2',
    "kind": "UPDATE {s}.entries SET kind = 'message' WHERE seq % 4294967296 = 2",
    "meta": "UPDATE {s}.entries SET meta = '{\"user\":1}' WHERE seq % 4294967296 = 2",
    "time": "UPDATE {s}.entries SET time = time - 1 WHERE seq % 4294967296 = 2",
    "id": "UPDATE {s}.entries SET id = 'other' WHERE seq % 4294967296 = 2",
    "parent": "UPDATE {s}.entries SET parent_id = NULL WHERE seq % 4294967296 = 2",
    "hash": "UPDATE {s}.entries SET hash = sha256('x') WHERE seq % 4294967296 = 2",
    "first": "UPDATE {s}.entries SET payload = '{}' WHERE seq % 4294967296 = 0",
    "last": "UPDATE {s}.entries SET payload = '{}' WHERE seq % 4294967296 = 4",
    "removed from the middle": "DELETE FROM {s}.entries WHERE seq % 4294967296 = 2",
    "removed from the start": "DELETE FROM {s}.entries WHERE seq % 4294967296 = 0 AND kind = 'note'",
    "session renamed": "UPDATE {s}.sessions SET id = id || 'x'",
    "session removed": "DELETE FROM {s}.sessions WHERE id = 's2'",
    "moved to a field beside": "UPDATE {s}.entries SET kind = kind || left(meta, 1), "
    "meta = right(meta, -1) WHERE seq % 4294967296 = 2",
    "swapped": "UPDATE {s}.entries a SET payload = b.payload FROM {s}.entries b "
    "WHERE a.seq / 4294967296 = b.seq / 4294967296 AND a.seq % 4294967296 = 1 "
    "AND b.seq % 4294967296 = 3",
}


@each_row("what", TAMPERING)
def test_what_the_owner_rewrites_behind_the_triggers_breaks_the_chain(tape, what):
    assert asyncio.run(broken_entry(tape.app, tape.schema)) is None
    with psycopg.connect(tape.owner) as connection:  # rolled back at the end
        for table in ("entries", "sessions"):
            connection.execute(f"ALTER TABLE {tape.schema}.{table} DISABLE TRIGGER USER")
        changed = connection.execute(TAMPERING[what].replace("{s}", tape.schema))
        assert changed.rowcount
        from hookline.tape.postgres.tables import BROKEN, within

        assert connection.execute(within(BROKEN, tape.schema)).fetchone() is not None
        connection.rollback()


def test_verify_names_the_entry_and_exits_with_1(own, tmp_path, monkeypatch, capsys):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[tape]\nurl = "{own.app}"\nschema = "{own.schema}"\nhome = "h"\n'
    )
    hookline = commandline.here(home, tmp_path, monkeypatch, capsys)
    assert "every entry is as it was appended" in hookline("db", "verify").stdout
    own.run(
        own.owner,
        "ALTER TABLE {s}.entries DISABLE TRIGGER USER",
        "UPDATE {s}.entries SET payload = '{}' WHERE id = '" + own.entries[3].id + "'",
    )
    found = hookline("db", "verify")
    assert found.returncode == 1
    assert f"entry {own.entries[3].id} of session s1 (number 4)" in found.stderr


# --- administration ---


def test_a_home_is_set_up_by_the_commands_alone(tmp_path, monkeypatch, capsys):
    schema = postgres.new_schema()
    home = tmp_path / "home"
    home.mkdir()
    owner, app = postgres.url_for(f"{schema}_owner"), postgres.url_for(f"{schema}_app")
    (home / "config.toml").write_text(f'[tape]\nurl = "{app}"\nschema = "{schema}"\n')
    hookline = commandline.here(home, tmp_path, monkeypatch, capsys)
    try:
        names = ("--owner", f"{schema}_owner", "--role", f"{schema}_app")
        shown = hookline("db", "roles", "--sql", *names).stdout
        wanted = ("CREATE ROLE", "CREATE SCHEMA", "GRANT")
        statements = [line for line in shown.splitlines() if line.startswith(wanted)]
        assert len(statements) == 4
        postgres.execute(*statements)

        refused = hookline("tape", "list")
        assert refused.returncode != 0
        assert "hookline db" in refused.stderr
        assert hookline("db", "migrate", "--url", owner).returncode == 0
        refused = hookline("tape", "list")
        assert refused.returncode != 0
        assert "hookline db grant ROLE" in refused.stderr
        assert hookline("db", "grant", f"{schema}_app", "--url", owner).returncode == 0

        assert hookline("tape", "list").returncode == 0
        assert hookline("db", "migrate").returncode == 0  # nothing to do, so nothing is refused
        status = hookline("db", "status").stdout
        assert f"role      {schema}_app can append and cannot rewrite" in status
        assert f"owner     {schema}_owner" in hookline("db", "roles").stdout
        assert f"ok  database  {schema}_app can append" in hookline("doctor").stdout

        assert hookline("db", "revoke", f"{schema}_app", "--url", owner).returncode == 0
        assert hookline("tape", "list").returncode != 0
        again = hookline("db", "revoke", f"{schema}_app", "--url", owner)
        assert (again.returncode, "is not admitted" in again.stderr) == (2, True)
    finally:
        postgres.drop_roles(schema)


def test_one_role_for_everything_works_and_doctor_says_so(tmp_path, monkeypatch, capsys):
    schema = postgres.new_schema()
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(f'[tape]\nurl = "{postgres.url()}"\nschema = "{schema}"\n')
    hookline = commandline.here(home, tmp_path, monkeypatch, capsys)
    try:
        assert hookline("tape", "list").returncode == 0
        told = hookline("doctor").stdout
        assert "--  database  postgres can rewrite the tape: it is a superuser" in told
        assert "hookline db roles --sql" in told
    finally:
        postgres.drop(schema)


@pytest.mark.parametrize("kind", ["owner", "superuser", "bypass", "member", "unknown"])
async def test_a_role_that_could_rewrite_is_not_admitted(tape, kind):
    role = f"{tape.schema}_{kind}"
    made = {
        "superuser": f"CREATE ROLE {role} LOGIN SUPERUSER",
        "bypass": f"CREATE ROLE {role} LOGIN BYPASSRLS",
        "member": f"CREATE ROLE {role} LOGIN IN ROLE {tape.schema}_owner",
    }.get(kind)
    if made:
        postgres.execute(made)
    store = await PostgresStore.open(tape.owner, schema=tape.schema)
    try:
        async with store.connection() as connection:
            with pytest.raises(TapeDenied):
                await admit(connection, tape.schema, role)
    finally:
        await store.close()
        if made:
            postgres.execute(f"DROP ROLE {role}")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("GRANT UPDATE ON {s}.entries TO {s}_app", "it has UPDATE on the entries"),
        ("GRANT DELETE ON {s}.entries TO {s}_app", "it has DELETE on the entries"),
        ("GRANT TRUNCATE ON {s}.entries TO {s}_app", "it has TRUNCATE on the entries"),
        ("GRANT TRIGGER ON {s}.entries TO {s}_app", "it has TRIGGER on the entries"),
        ("GRANT CREATE ON SCHEMA {s} TO {s}_app", "it may create objects"),
        ("GRANT {s}_owner TO {s}_app", "it is in {s}_owner"),
        ("ALTER ROLE {s}_app BYPASSRLS", "it bypasses row security"),
        ("ALTER ROLE {s}_app SUPERUSER", "it is a superuser"),
    ],
)
async def test_each_power_that_was_given_later_is_reported(own, given, said):
    postgres.execute(given.replace("{s}", own.schema))
    store = await PostgresStore.open(own.app, schema=own.schema)
    async with store.connection() as connection:
        standing = await standing_of(connection, own.schema)
    await store.close()
    assert said.replace("{s}", own.schema) in standing.summary


async def test_a_grant_by_hand_does_not_survive_the_next_migration(own):
    own.run(own.owner, "GRANT UPDATE, DELETE ON {s}.entries TO {s}_app")
    store = await PostgresStore.open(own.owner, schema=own.schema)
    async with store.connection() as connection:
        await admit(connection, own.schema, f"{own.schema}_app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            own.run(own.app, "UPDATE {s}.entries SET kind = 'x'")
        assert await expel(connection, own.schema, f"{own.schema}_app")
    await store.close()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        own.run(own.app, "SELECT * FROM {s}.entries")
