#ifndef FL_SERVER_IDENTITY_DB_IMPL_H
#define FL_SERVER_IDENTITY_DB_IMPL_H

/*
 * The SQL statements of identity.db, and its schema (schema.c). A parameter `:column` is that of a
 * record (identity_rows_impl.h), the others are bound in order.
 */

#include "libfl/db/db.h"

/* clang-format off */
#define FL__IDENTITY_STATEMENTS(X)                                                          \
    X(GET_FEDERATION, "SELECT " FL_ROW_SELECT(FL__FEDERATION_ROWS) " FROM federation")      \
    X(PUT_FEDERATION, "INSERT INTO federation " FL_ROW_VALUES(FL__FEDERATION_ROWS))         \
    X(GET_CLEANED, "SELECT cleaned_ms FROM federation")                                     \
    X(SET_CLEANED, "UPDATE federation SET cleaned_ms = ?")                                  \
    X(PUT_INVITATION, "INSERT OR IGNORE INTO invitation "                                   \
        FL_ROW_VALUES(FL__INVITATION_ROWS))                                                 \
    X(COUNT_INVITATIONS, "SELECT COUNT(*) FROM invitation")                                 \
    X(FIND_INVITATION, "SELECT " FL_ROW_SELECT(FL__INVITATION_USABLE) " FROM invitation"    \
        " WHERE prefix = ?")                                                                \
    X(GET_INVITATIONS, "SELECT " FL_ROW_SELECT(FL__INVITATION_ROWS) " FROM invitation"      \
        " ORDER BY id")                                                                     \
    X(WITHDRAW, "UPDATE invitation SET withdrawn_ms = ? WHERE prefix = ?")                  \
    X(DROP_INVITATIONS, "DELETE FROM invitation WHERE ends_ms < ?")                         \
    X(DROP_USES, "DELETE FROM used WHERE invitation NOT IN (SELECT id FROM invitation)")    \
    X(GET_USE, "SELECT " FL_ROW_SELECT(FL__USE_ROWS) " FROM used"                           \
        " WHERE invitation = ? AND key = ?")                                                \
    X(LAST_USE, "SELECT " FL_ROW_SELECT(FL__USE_ROWS) " FROM used WHERE invitation = ?"     \
        " ORDER BY at_ms DESC LIMIT 1")                                                     \
    X(PUT_USE, "INSERT OR REPLACE INTO used " FL_ROW_VALUES(FL__USE_ROWS))                  \
    X(COUNT_USE, "UPDATE invitation SET used = used + 1 WHERE id = ? AND used < uses")      \
    X(PUT_CERTIFICATE, "INSERT INTO certificate " FL_ROW_VALUES(FL__CERTIFICATE_ROWS))      \
    X(GET_CERTIFICATE, "SELECT " FL_ROW_SELECT(FL__CERTIFICATE_ISSUED) " FROM certificate"  \
        " WHERE serial = ?")                                                                \
    X(GET_SUCCESSOR, "SELECT " FL_ROW_SELECT(FL__CERTIFICATE_ISSUED) " FROM certificate"    \
        " WHERE parent = ? AND key = ? ORDER BY id DESC LIMIT 1")                           \
    X(GET_CERTIFICATES, "SELECT " FL_ROW_SELECT(FL__CERTIFICATE_ROWS) " FROM certificate"   \
        " WHERE ?1 = '' OR name = ?1 ORDER BY name, id")                                    \
    /* The holder of the name: a certificate that is usable or renewable, and not revoked. */ \
    X(HOLDER, "SELECT key, role, issued_ms, not_before, not_after,"                         \
        " COALESCE((SELECT MAX(issued_ms) FROM certificate WHERE name = ?1 AND joined = 1), 0)" \
        " AS joined_ms FROM certificate AS c WHERE name = ?1"                               \
        " AND not_after >= ?2 AND key <> ?3 AND NOT EXISTS (SELECT 1 FROM revocation WHERE" \
        " (kind = 1 AND value = c.serial) OR (kind = 2 AND value = c.key))"                 \
        " ORDER BY issued_ms DESC LIMIT 1")                                                 \
    X(OTHER_NAME, "SELECT name FROM certificate WHERE key = ? AND name <> ?"                \
        " AND not_after >= ? LIMIT 1")                                                      \
    X(HAS_CERTIFICATE, "SELECT 1 FROM certificate WHERE name = ?1"                          \
        " UNION ALL SELECT 1 FROM shown WHERE name = ?1 LIMIT 1")                           \
    X(GET_SHOWN, "SELECT not_after FROM shown WHERE name = ?")                              \
    X(PUT_SHOWN, "INSERT OR REPLACE INTO shown " FL_ROW_VALUES(FL__SHOWN_ROWS))             \
    X(DROP_SHOWN, "DELETE FROM shown WHERE not_after < ?")                                  \
    X(COUNT_RECENT, "SELECT COUNT(*) FROM certificate WHERE name = ? AND issued_ms > ?")    \
    X(DROP_CERTIFICATES, "DELETE FROM certificate WHERE not_after < ?")                     \
    /* The most final revocation of serial, key and name. */                                \
    X(GET_REVOCATION, "SELECT " FL_ROW_SELECT(FL__REVOCATION_ROWS) " FROM revocation"       \
        " WHERE (kind = 1 AND value = ?1) OR (kind = 2 AND value = ?2)"                     \
        " OR (kind = 3 AND value = ?3) ORDER BY verb LIMIT 1")                              \
    X(GET_REVOCATIONS, "SELECT " FL_ROW_SELECT(FL__REVOCATION_ROWS) " FROM revocation"      \
        " ORDER BY kind, value")                                                            \
    X(PUT_REVOCATION, "INSERT OR REPLACE INTO revocation "                                  \
        FL_ROW_VALUES(FL__REVOCATION_ROWS))                                                 \
    /* All certificates of a name that have no longer revocation yet. */                    \
    X(REVOKE_NAME, "INSERT OR REPLACE INTO revocation (kind, value, verb, why, by, at_ms, ends)" \
        " SELECT 1, serial, :verb, :why, :by, :at_ms, not_after + ? FROM certificate AS c"  \
        " WHERE name = ? AND key <> ? AND NOT EXISTS (SELECT 1 FROM revocation"             \
        " WHERE kind = 1 AND value = c.serial AND verb <= :verb)")                          \
    X(REVOKE_KEYS, "INSERT OR REPLACE INTO revocation (kind, value, verb, why, by, at_ms, ends)" \
        " SELECT DISTINCT 2, key, :verb, :why, :by, :at_ms, 0 FROM certificate WHERE name = ?") \
    X(COUNT_NAME, "SELECT COUNT(*) FROM certificate WHERE name = ?1 AND not_after >= ?2")   \
    X(COUNT_KEY, "SELECT COUNT(*) FROM certificate WHERE key = ?1 AND not_after >= ?2")     \
    X(COUNT_SERIAL, "SELECT COUNT(*) FROM certificate WHERE serial = ?")                    \
    X(DROP_REVOCATION, "DELETE FROM revocation"                                             \
        " WHERE kind = :kind AND value = :value AND verb = :verb")                          \
    X(DROP_REVOCATIONS, "DELETE FROM revocation WHERE ends > 0 AND ends < ?")               \
    X(PUT_AUDIT, "INSERT INTO audit " FL_ROW_VALUES(FL__AUDIT_ROWS))                        \
    X(DROP_AUDIT, "DELETE FROM audit WHERE peer = 1 AND number <= (SELECT number FROM audit"\
        " WHERE peer = 1 ORDER BY number DESC LIMIT 1 OFFSET ?)")                           \
    X(GET_AUDIT, "SELECT * FROM (SELECT " FL_ROW_SELECT(FL__AUDIT_ROWS) " FROM audit"       \
        " ORDER BY number DESC LIMIT ?) ORDER BY number")
/* clang-format on */

enum fl__identity_statement {
#define X(name, sql) FL__SQL_##name,
    FL__IDENTITY_STATEMENTS(X)
#undef X
        FL__IDENTITY_STATEMENT_COUNT
};

extern const struct fl_db_kind fl__identity_db;

#endif
