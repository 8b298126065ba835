/*
 * The schema of identity.db. Times that end in _ms are of our clock, in ms since 1970; those of
 * certificates are seconds.
 */
#include "server/identity/identity_db_impl.h"

static const char schema[] =
    "CREATE TABLE federation ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " name TEXT NOT NULL,"
    " cleaned_ms INTEGER NOT NULL," /* time of the last deletion of expired rows */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE invitation ("
    " id INTEGER PRIMARY KEY,"
    " prefix TEXT NOT NULL UNIQUE,"
    " hash BLOB NOT NULL," /* SHA-256 of the token */
    " name TEXT NOT NULL," /* or pattern */
    " labels BLOB,"        /* keys and values, each with its NUL */
    " uses INTEGER NOT NULL,"
    " used INTEGER NOT NULL,"
    " made_ms INTEGER NOT NULL,"
    " ends_ms INTEGER NOT NULL,"
    " withdrawn_ms INTEGER NOT NULL,"
    " by TEXT NOT NULL,"
    " sum INTEGER"
    ") STRICT;"
    "CREATE INDEX invitation_ends ON invitation (ends_ms);"
    "CREATE TABLE used (" /* the keys that joined by an invitation, and their certificates */
    " invitation INTEGER NOT NULL,"
    " key BLOB NOT NULL,"
    " name TEXT NOT NULL,"
    " serial BLOB NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " sum INTEGER,"
    " UNIQUE (invitation, key)"
    ") STRICT;"
    "CREATE TABLE certificate ("
    " id INTEGER PRIMARY KEY,"
    " serial BLOB NOT NULL UNIQUE,"
    " name TEXT NOT NULL,"
    " role INTEGER NOT NULL,"
    " key BLOB NOT NULL,"
    " issued_ms INTEGER NOT NULL,"
    " not_before INTEGER NOT NULL,"
    " not_after INTEGER NOT NULL,"
    " by TEXT NOT NULL,"
    " der BLOB NOT NULL,"
    " parent BLOB,"             /* serial of its predecessor */
    " joined INTEGER NOT NULL," /* 1: by an invitation */
    " sum INTEGER"
    ") STRICT;"
    "CREATE INDEX certificate_name ON certificate (name, issued_ms);"
    "CREATE INDEX certificate_key ON certificate (key);"
    "CREATE INDEX certificate_parent ON certificate (parent);"
    "CREATE INDEX certificate_end ON certificate (not_after);"
    "CREATE TABLE revocation ("
    " id INTEGER PRIMARY KEY,"
    " kind INTEGER NOT NULL," /* enum fl__revocation_kind */
    " value BLOB NOT NULL,"   /* serial, hash of the key, or name */
    " verb INTEGER NOT NULL," /* enum fl_revocation_verb */
    " why TEXT NOT NULL,"
    " by TEXT NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " ends INTEGER NOT NULL," /* when the target is no longer usable; 0: never */
    " sum INTEGER,"
    " UNIQUE (kind, value)"
    ") STRICT;"
    "CREATE TABLE audit ("
    " number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " at_ms INTEGER NOT NULL,"
    " who TEXT NOT NULL,"
    " what TEXT NOT NULL,"
    " object TEXT NOT NULL,"
    " result TEXT NOT NULL,"
    " peer INTEGER NOT NULL," /* 1: a peer can cause it at will */
    " sum INTEGER"
    ") STRICT;"
    "CREATE INDEX audit_peer ON audit (peer, number);"
    /*
     * Names that were shown with a certificate of an operator's own PKI, with the latest expiry of
     * such a certificate (s).
     */
    "CREATE TABLE shown ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " not_after INTEGER NOT NULL,"
    " sum INTEGER"
    ") STRICT;";

static const char *const statements[] = {
#define X(name, sql) [FL__SQL_##name] = (sql),
    FL__IDENTITY_STATEMENTS(X)
#undef X
};

const struct fl_db_kind fl__identity_db = {
    .what = "identity database",
    .id = 0x666c6964, /* "flid" */
    .mode = 0600,
    .statements = statements,
    .n_statements = FL__IDENTITY_STATEMENT_COUNT,
    .schema = schema,
};
