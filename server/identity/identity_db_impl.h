#ifndef FL_SERVER_IDENTITY_DB_IMPL_H
#define FL_SERVER_IDENTITY_DB_IMPL_H

/* The SQL statements of identity.db, and its schema (schema.c). */

#include "libfl/db/db.h"

/* clang-format off */
#define FL__CERTIFICATE_COLUMNS \
    "serial, name, role, key, issued_ms, not_before, not_after, by, der"
/* The most final revocation of serial, key and name. */
#define FL__REVOKED_BY \
    " FROM revocation WHERE (kind = 1 AND value = ?1) OR (kind = 2 AND value = ?2)" \
    " OR (kind = 3 AND value = ?3) ORDER BY verb LIMIT 1"

#define FL__IDENTITY_STATEMENTS(X)                                                          \
    X(GET_FEDERATION, "SELECT name FROM federation")                                        \
    X(PUT_FEDERATION, "INSERT INTO federation (one, name, cleaned_ms) VALUES (1, ?, 0)")    \
    X(GET_CLEANED, "SELECT cleaned_ms FROM federation")                                     \
    X(SET_CLEANED, "UPDATE federation SET cleaned_ms = ?")                                  \
    X(PUT_INVITATION, "INSERT OR IGNORE INTO invitation (prefix, hash, name, labels, uses," \
        " used, made_ms, ends_ms, withdrawn_ms, by) VALUES (?, ?, ?, ?, ?, 0, ?, ?, 0, ?)") \
    X(COUNT_INVITATIONS, "SELECT COUNT(*) FROM invitation")                                 \
    X(FIND_INVITATION, "SELECT id, hash, name, labels, uses, used, made_ms, ends_ms,"       \
        " withdrawn_ms FROM invitation WHERE prefix = ?")                                   \
    X(GET_INVITATIONS, "SELECT prefix, name, labels, uses, used, made_ms, ends_ms,"         \
        " withdrawn_ms, by FROM invitation ORDER BY id")                                    \
    X(WITHDRAW, "UPDATE invitation SET withdrawn_ms = ? WHERE prefix = ?")                  \
    X(DROP_INVITATIONS, "DELETE FROM invitation WHERE ends_ms < ?")                         \
    X(DROP_USES, "DELETE FROM used WHERE invitation NOT IN (SELECT id FROM invitation)")    \
    X(GET_USE, "SELECT name, serial FROM used WHERE invitation = ? AND key = ?")            \
    X(LAST_USE, "SELECT name, at_ms, key FROM used WHERE invitation = ?"                    \
        " ORDER BY at_ms DESC LIMIT 1")                                                     \
    X(PUT_USE, "INSERT OR REPLACE INTO used (invitation, key, name, serial, at_ms)"         \
        " VALUES (?, ?, ?, ?, ?)")                                                          \
    X(COUNT_USE, "UPDATE invitation SET used = used + 1 WHERE id = ? AND used < uses")      \
    X(PUT_CERTIFICATE, "INSERT INTO certificate (" FL__CERTIFICATE_COLUMNS                  \
        ", parent, joined) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                       \
    X(GET_CERTIFICATE, "SELECT " FL__CERTIFICATE_COLUMNS " FROM certificate"                \
        " WHERE serial = ?")                                                                \
    X(GET_SUCCESSOR, "SELECT " FL__CERTIFICATE_COLUMNS " FROM certificate"                  \
        " WHERE parent = ? AND key = ? ORDER BY id DESC LIMIT 1")                           \
    X(GET_CERTIFICATES, "SELECT " FL__CERTIFICATE_COLUMNS " FROM certificate"               \
        " WHERE ?1 = '' OR name = ?1 ORDER BY name, id")                                    \
    /* The holder of the name: a certificate that is usable or renewable, and not revoked. */ \
    X(HOLDER, "SELECT key, not_after, issued_ms, (SELECT MAX(issued_ms) FROM certificate"   \
        " WHERE name = ?1 AND joined = 1), role, not_before FROM certificate AS c"          \
        " WHERE name = ?1"                                                                  \
        " AND not_after >= ?2 AND key <> ?3 AND NOT EXISTS (SELECT 1 FROM revocation WHERE"     \
        " (kind = 1 AND value = c.serial) OR (kind = 2 AND value = c.key))"                 \
        " ORDER BY issued_ms DESC LIMIT 1")                                                 \
    X(OTHER_NAME, "SELECT name FROM certificate WHERE key = ? AND name <> ?"                \
        " AND not_after >= ? LIMIT 1")                                                      \
    X(HAS_CERTIFICATE, "SELECT 1 FROM certificate WHERE name = ?1"                          \
        " UNION ALL SELECT 1 FROM shown WHERE name = ?1 LIMIT 1")                           \
    X(GET_SHOWN, "SELECT not_after FROM shown WHERE name = ?")                              \
    X(PUT_SHOWN, "INSERT OR REPLACE INTO shown (name, not_after) VALUES (?, ?)")            \
    X(DROP_SHOWN, "DELETE FROM shown WHERE not_after < ?")                                  \
    X(COUNT_RECENT, "SELECT COUNT(*) FROM certificate WHERE name = ? AND issued_ms > ?")    \
    X(DROP_CERTIFICATES, "DELETE FROM certificate WHERE not_after < ?")                     \
    X(GET_REVOCATION, "SELECT verb, why, by, at_ms" FL__REVOKED_BY)                              \
    X(GET_REVOCATIONS, "SELECT kind, value, verb, why, by, at_ms FROM revocation"                   \
        " ORDER BY kind, value")                                                            \
    X(PUT_REVOCATION, "INSERT OR REPLACE INTO revocation (kind, value, verb, why, by, at_ms, ends)" \
        " VALUES (?, ?, ?, ?, ?, ?, ?)")                                                    \
    /* All certificates of a name that have no longer revocation yet. */                    \
    X(REVOKE_NAME, "INSERT OR REPLACE INTO revocation (kind, value, verb, why, by, at_ms, ends)"  \
        " SELECT 1, serial, ?2, ?3, ?4, ?5, not_after + ?6 FROM certificate AS c"           \
        " WHERE name = ?1 AND key <> ?7 AND NOT EXISTS (SELECT 1 FROM revocation"               \
        " WHERE kind = 1 AND value = c.serial AND verb <= ?2)")                             \
    X(REVOKE_KEYS, "INSERT OR REPLACE INTO revocation (kind, value, verb, why, by, at_ms, ends)"  \
        " SELECT DISTINCT 2, key, ?2, ?3, ?4, ?5, 0 FROM certificate WHERE name = ?1")      \
    X(COUNT_NAME, "SELECT COUNT(*) FROM certificate WHERE name = ?1 AND not_after >= ?2")   \
    X(COUNT_KEY, "SELECT COUNT(*) FROM certificate WHERE key = ?1 AND not_after >= ?2")     \
    X(DROP_REVOCATION, "DELETE FROM revocation WHERE kind = ? AND value = ? AND verb = ?")          \
    X(DROP_REVOCATIONS, "DELETE FROM revocation WHERE ends > 0 AND ends < ?")                       \
    X(PUT_AUDIT, "INSERT INTO audit (at_ms, who, what, object, result, peer)"               \
        " VALUES (?, ?, ?, ?, ?, ?)")                                                       \
    X(DROP_AUDIT, "DELETE FROM audit WHERE peer = 1 AND number <= (SELECT number FROM audit"\
        " WHERE peer = 1 ORDER BY number DESC LIMIT 1 OFFSET ?)")                           \
    X(GET_AUDIT, "SELECT * FROM (SELECT number, at_ms, who, what, object, result FROM audit"\
        " ORDER BY number DESC LIMIT ?) ORDER BY number")
/* clang-format on */

enum fl__identity_statement {
#define X(name, sql) FL__SQL_##name,
    FL__IDENTITY_STATEMENTS(X)
#undef X
        FL__IDENTITY_STATEMENT_COUNT
};

/* Objects of a revocation; the lower number is the more final one. */
enum fl__revocation_kind { FL__REVOKE_SERIAL = 1, FL__REVOKE_KEY, FL__REVOKE_NAME };

extern const struct fl_db_kind fl__identity_db;

#endif
