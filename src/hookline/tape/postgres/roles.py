"""Who may do what with a tape in PostgreSQL: an owner of the tables, and roles that only append.

The owner makes the tables, by `hookline db migrate`, and admits roles, by `hookline db grant ROLE`. An
admitted role reads everything in the schema and adds entries; it cannot change or remove one. Row
security hides every table from a role that is not admitted, whatever it was granted besides. The list
of admitted roles is a table that only the owner can write.

Where one role does everything, as on a laptop, the same tables work: an owner passes row security.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from hookline.errors import TapeDenied

from .connection import Connection
from .tables import within

MEMBERS: Final = "members"

_RIGHTS: Final = {
    "entries": "SELECT, INSERT (id, parent_id, kind, time, meta, payload, seq, jump)",
    "sessions": "SELECT, INSERT (id)",
    "words": "SELECT, INSERT",
    "home": "SELECT, INSERT",  # of one row: the first home that opens the schema names itself
    "versions": "SELECT",
    MEMBERS: "SELECT",
    "channels": "SELECT",
}
"""The privileges of an admitted role on the tables of the tape. In other tables it may change rows."""
_CHANGING: Final = "SELECT, INSERT, UPDATE, DELETE"

_TABLES: Final = """
    SELECT relname, relrowsecurity FROM pg_class
    WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')
        AND pg_has_role(relowner, 'USAGE') ORDER BY relname
"""
_MEMBERS: Final = "SELECT rolname FROM {schema}.members JOIN pg_roles ON oid = role ORDER BY rolname"
_ROLE: Final = """
    SELECT r.rolsuper, r.rolbypassrls, pg_has_role(r.oid, c.relowner, 'MEMBER')
    FROM pg_roles r, pg_class c
    WHERE r.rolname = %s AND c.oid = format('%%I.entries', %s::text)::regclass
"""
_STANDING: Final = """
    SELECT current_user::text, session_user::text, owner.rolname, me.rolsuper, me.rolbypassrls,
        pg_has_role(c.relowner, 'MEMBER'), has_schema_privilege(c.relnamespace, 'CREATE'),
        array(SELECT p FROM unnest(array['UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER']) p
            WHERE has_table_privilege(c.oid, p)),
        array(SELECT r.rolname::text FROM {schema}.members JOIN pg_roles r ON r.oid = role ORDER BY 1)
    FROM pg_class c JOIN pg_roles owner ON owner.oid = c.relowner
    JOIN pg_roles me ON me.rolname = current_user
    WHERE c.oid = format('%%I.entries', %s::text)::regclass
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the connecting role is to the tables."""

    role: str
    owner: str
    members: list[str]
    """The roles that were admitted."""
    powers: list[str]
    """Why this role could rewrite the tape; nothing if it can only append."""

    @property
    def summary(self) -> str:
        """One line for `hookline db status` and `hookline doctor`."""
        if not self.powers:
            return f"{self.role} can append and cannot rewrite; the owner is {self.owner}"
        return (
            f"{self.role} can rewrite the tape: {', '.join(self.powers)}; "
            "`hookline db roles --sql` shows how to separate the owner from the role that appends"
        )


async def standing_of(connection: Connection, schema: str) -> Standing:
    """What the role of this connection may do beyond appending."""
    found = await connection.execute(within(_STANDING, schema), (schema,))
    row = await found.fetchone()
    assert row is not None
    role, session, owner, is_super, bypasses, owns, creates, rights, members = row
    powers = [
        text
        for is_so, text in (
            (is_super, "it is a superuser"),
            (owns and not is_super, "it owns the tables" if role == owner else f"it is in {owner}"),
            (bypasses and not is_super, "it bypasses row security"),
            (creates and not owns, f"it may create objects in schema {schema}"),
            (session != role, f"it logs in as {session}"),
            *((not owns, f"it has {right} on the entries") for right in rights),
        )
        if is_so
    ]
    return Standing(role, owner, members, powers)


async def secure(connection: Connection, schema: str) -> None:
    """Enable row security for every table, and grant the admitted roles their privileges.

    The owner runs it after every migration: a new table is closed until then.
    """
    tables = await (await connection.execute(_TABLES, (schema,))).fetchall()
    members = await members_of(connection, schema)
    for table, is_secured in tables:
        if not is_secured:
            await _run(connection, "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY", schema, table)
        await _open(connection, schema, table, members)
    await _grant_others(connection, schema, members)


async def members_of(connection: Connection, schema: str) -> list[str]:
    """The roles that may use this schema, besides its owner."""
    rows = await (await connection.execute(within(_MEMBERS, schema))).fetchall()
    return [name for (name,) in rows]


async def admit(connection: Connection, schema: str, role: str) -> None:
    """Let a role append to the tape, and use the tables next to it."""
    found = await (await connection.execute(_ROLE, (role, schema))).fetchone()
    if found is None:
        raise TapeDenied(
            f"there is no database role {role!r}; `hookline db roles --sql` shows how to make one"
        )
    for is_so, reason in zip(
        found, ("is a superuser", "bypasses row security", "owns the tables"), strict=True
    ):
        if is_so:
            raise TapeDenied(
                f"role {role!r} {reason}, so that nothing would keep it from rewriting the tape; "
                "name a role of its own for Hookline"
            )
    async with connection.transaction():
        statement = "INSERT INTO {schema}.members (role) VALUES (%s::regrole) ON CONFLICT DO NOTHING"
        await connection.execute(within(statement, schema), (_quoted(connection, role),))
        await secure(connection, schema)


async def expel(connection: Connection, schema: str, role: str) -> bool:
    """Take everything in the schema away from a role. Returns whether it had been admitted."""
    async with connection.transaction():
        statement = "DELETE FROM {schema}.members USING pg_roles WHERE oid = role AND rolname = %s"
        gone = await connection.execute(within(statement, schema), (role,))
        if not gone.rowcount:
            return False
        for kind in ("ALL TABLES", "ALL SEQUENCES", "ALL FUNCTIONS"):
            await _run(
                connection,
                f"REVOKE ALL ON {kind} IN SCHEMA {{schema}} FROM {{roles}}",
                schema,
                roles=[role],
            )
        await _run(connection, "REVOKE ALL ON SCHEMA {schema} FROM {roles}", schema, roles=[role])
        await secure(connection, schema)
        return True


async def _open(connection: Connection, schema: str, table: str, members: Sequence[str]) -> None:
    """Set the privileges and policies of one table, for exactly these roles."""
    rights = _RIGHTS.get(table, _CHANGING)
    commands = ("SELECT", "INSERT") if table in _RIGHTS else ("ALL",)
    for command in commands:
        await _run(connection, f"DROP POLICY IF EXISTS hookline_{command} ON {{table}}", schema, table)
    if not members:
        return
    await _run(connection, "REVOKE ALL ON {table} FROM {roles}", schema, table, members)
    await _run(connection, f"GRANT {rights} ON {{table}} TO {{roles}}", schema, table, members)
    for command in commands:
        using = "" if command == "INSERT" else "USING (true)"
        checked = "" if command == "SELECT" else "WITH CHECK (true)"
        policy = f"CREATE POLICY hookline_{command} ON {{table}} FOR {command} TO {{roles}}"
        await _run(connection, f"{policy} {using} {checked}", schema, table, members)


async def _grant_others(connection: Connection, schema: str, members: Sequence[str]) -> None:
    await _run(connection, "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC", schema)
    if members:
        await _run(connection, "GRANT USAGE ON SCHEMA {schema} TO {roles}", schema, roles=members)
        for what in ("USAGE ON ALL SEQUENCES", "EXECUTE ON ALL FUNCTIONS"):
            await _run(
                connection, f"GRANT {what} IN SCHEMA {{schema}} TO {{roles}}", schema, roles=members
            )


async def _run(
    connection: Connection, statement: str, schema: str, table: str = "", roles: Sequence[str] = ()
) -> None:
    composed = sql.SQL(statement).format(  # pyright: ignore[reportArgumentType]
        schema=sql.Identifier(schema),
        table=sql.Identifier(schema, table),
        roles=sql.SQL(", ").join(map(sql.Identifier, roles)),
    )
    await connection.execute(composed)


def _quoted(connection: Connection, role: str) -> str:
    return sql.Identifier(role).as_string(connection)


def creation_sql(schema: str, database: str, owner: str, role: str) -> str:
    """The statements by which an administrator makes the two roles."""
    names = {name: sql.Identifier(name).as_string(None) for name in (schema, database, owner, role)}
    return "\n".join(
        (
            f"CREATE ROLE {names[owner]} LOGIN NOSUPERUSER NOBYPASSRLS;",
            f"CREATE ROLE {names[role]} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;",
            f"\\password {owner}",
            f"\\password {role}",
            f"REVOKE ALL ON DATABASE {names[database]} FROM PUBLIC;",
            f"GRANT CONNECT ON DATABASE {names[database]} TO {names[owner]}, {names[role]};",
            f"CREATE SCHEMA {names[schema]} AUTHORIZATION {names[owner]};",
        )
    )
