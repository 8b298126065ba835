/* The schema of identity.db, from the lists of its rows. */
#include "server/identity/identity_db_impl.h"
#include "server/identity/identity_rows_impl.h"

static const char schema[] =
    "CREATE TABLE federation ("
    " one INTEGER PRIMARY KEY CHECK (one = 1), " FL_ROW_CREATE(
        FL__FEDERATION_ROWS) ") STRICT;"
                             "CREATE TABLE invitation (" FL_ROW_CREATE(
                                 FL__INVITATION_ROWS) ", UNIQUE (prefix)) STRICT;"
                                                      "CREATE INDEX invitation_ends ON invitation "
                                                      "(ends_ms);"
                                                      "CREATE TABLE used (" FL_ROW_CREATE(
                                                          FL__USE_ROWS) ", UNIQUE (invitation, "
                                                                        "key)) STRICT;"
                                                                        "CREATE TABLE certificate ("
                                                                        " id INTEGER PRIMARY "
                                                                        "KEY, " FL_ROW_CREATE(
                                                                            FL__CERTIFICATE_ROWS) ", UNIQUE (serial)) STRICT;"
                                                                                                  "CREATE INDEX certificate_name ON certificate (name, issued_ms);"
                                                                                                  "CREATE INDEX certificate_key ON certificate (key);"
                                                                                                  "CREATE INDEX certificate_parent ON certificate (parent);"
                                                                                                  "CREATE INDEX certificate_end ON certificate (not_after);"
                                                                                                  "CREATE TABLE revocation ("
                                                                                                  " id INTEGER PRIMARY KEY, " FL_ROW_CREATE(
                                                                                                      FL__REVOCATION_ROWS) ", UNIQUE (kind, value)) STRICT;"
                                                                                                                           "CREATE TABLE audit (" FL_ROW_CREATE(
                                                                                                                               FL__AUDIT_ROWS) ") STRICT;"
                                                                                                                                               "CREATE INDEX audit_peer ON audit (peer, number);"
                                                                                                                                               "CREATE TABLE shown ("
                                                                                                                                               " id INTEGER PRIMARY KEY, " FL_ROW_CREATE(
                                                                                                                                                   FL__SHOWN_ROWS) ", UNIQUE (name)) STRICT;";

FL_ROW_TABLE(fl__federation, struct fl__federation, "federation", FL__FEDERATION_ROWS)
FL_ROW_TABLE(fl__invitation, struct fl__invitation, "invitation", FL__INVITATION_ROWS)
FL_ROW_TABLE(fl__use, struct fl__use, "used", FL__USE_ROWS)
FL_ROW_TABLE(fl__certificate, struct fl__certificate, "certificate", FL__CERTIFICATE_ROWS)
FL_ROW_TABLE(fl__holder, struct fl__holder, "certificate", FL__HOLDER_ROWS)
FL_ROW_TABLE(fl__revocation, struct fl__revocation, "revocation", FL__REVOCATION_ROWS)
FL_ROW_TABLE(fl__audit_line, struct fl_audit_line, "audit", FL__AUDIT_ROWS)
FL_ROW_TABLE(fl__shown, struct fl__shown, "shown", FL__SHOWN_ROWS)

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
    .schema = {schema},
};
