/*
 * The schema of the state database. Its version is the version of the whole folder: a release that
 * changes the format of any other file in the folder adds a migration too (libfl/db/db.h), so that
 * an older program rejects the folder before it reads that file.
 *
 * The columns come from the lists of the rows (store_rows_impl.h), which say what they mean.
 */
#include "server/store/store_db.h"

/* clang-format off */
static const char schema[] = /* a compiler's limit of a text is 4095 */
    "CREATE TABLE federation ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    FL_ROW_CREATE(FL__FOLDER_ROWS)
    ") STRICT;"
    "CREATE TABLE client ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    FL_ROW_CREATE(FL__CLIENT_FIGURES)
    ") STRICT;"
    "CREATE TABLE round ("
    FL__ROUND_ROWS(FL_ROW_DECLARE)
    " generation INTEGER NOT NULL,"
    " sum INTEGER,"
    " PRIMARY KEY (round)"
    ") STRICT;"
    /* Rounds abandoned by a rollback (store_rollback.h). */
    "CREATE TABLE abandoned ("
    FL__ROUND_ROWS(FL_ROW_DECLARE)
    " generation INTEGER NOT NULL,"
    " sum INTEGER,"
    " PRIMARY KEY (generation, round)"
    ") STRICT;";
static const char schema_more[] =
    "CREATE TABLE open_round ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    FL__OPEN_ROWS(FL_ROW_DECLARE)
    " meaning BLOB," /* compatibility digest when the round was opened */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE part ("
    " client INTEGER PRIMARY KEY REFERENCES client (id),"
    " place INTEGER NOT NULL," /* order of the selection */
    FL_ROW_CREATE(FL__PART_FIGURES)
    ") STRICT;"
    "CREATE TABLE participation ("
    FL_ROW_CREATE(FL__PARTICIPATION_ROWS)
    ") STRICT;"
    "CREATE INDEX participation_round ON participation (round);"
    "CREATE INDEX participation_client ON participation (client);"
    "CREATE TABLE setting ("
    FL_ROW_CREATE(FL__SETTING_ROWS)
    ", PRIMARY KEY (name)"
    ") STRICT;"
    "CREATE TABLE change ("
    " id INTEGER PRIMARY KEY,"
    FL_ROW_CREATE(FL__CHANGE_ROWS)
    ") STRICT;"
    "CREATE INDEX change_round ON change (round);"
    "CREATE TABLE pin ("
    FL_ROW_CREATE(FL__PIN_ROWS)
    ", PRIMARY KEY (round)"
    ") STRICT;"
    "CREATE TABLE client_error ("
    FL_ROW_CREATE(FL__CLIENT_ERROR_ROWS)
    ", PRIMARY KEY (name)"
    ") STRICT;"
    "CREATE INDEX client_error_at ON client_error (at_ms);"
    "CREATE TABLE client_labels ("
    " client INTEGER PRIMARY KEY REFERENCES client (id) ON DELETE CASCADE,"
    " labels BLOB NOT NULL,"
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE central ("
    FL_ROW_CREATE(FL__CENTRAL_ROWS)
    ", PRIMARY KEY (name)"
    ") STRICT;"
    "CREATE TABLE rollback ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    FL_ROW_CREATE(FL__ROLLBACK_ROWS)
    ") STRICT;"
    /* The reason of a pause: no round starts until an operator resumes. */
    "CREATE TABLE pause ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " reason TEXT NOT NULL,"
    " sum INTEGER"
    ") STRICT;";
/* clang-format on */

FL_ROW_TABLE(fl__folder, struct fl__folder, "federation", FL__FOLDER_ROWS)
FL_ROW_TABLE(fl__client, struct fl__client_row, "client", FL__CLIENT_ROWS)
FL_ROW_TABLE(fl__round, struct fl_round_rec, "round", FL__ROUND_ROWS)
FL_ROW_TABLE(fl__abandoned, struct fl_abandoned_round, "abandoned", FL__ABANDONED_ROWS)
FL_ROW_TABLE(fl__open_round, struct fl__open_round, "open_round", FL__OPEN_READ)
FL_ROW_TABLE(fl__part, struct fl__part, "part", FL__PART_ROWS)
FL_ROW_TABLE(fl__participation, struct fl_participation, "participation", FL__PARTICIPATION_ROWS)
FL_ROW_TABLE(fl__setting, struct fl__setting_rec, "setting", FL__SETTING_ROWS)
FL_ROW_TABLE(fl__change, struct fl_change_rec, "change", FL__CHANGE_ROWS)
FL_ROW_TABLE(fl__pin, struct fl_pin_rec, "pin", FL__PIN_ROWS)
FL_ROW_TABLE(fl__client_error, struct fl_client_error, "client_error", FL__CLIENT_ERROR_ROWS)
FL_ROW_TABLE(fl__client_labels, struct fl__client_labels, "client_labels", FL__CLIENT_LABELS_ROWS)
FL_ROW_TABLE(fl__central, struct fl__central, "central", FL__CENTRAL_ROWS)
FL_ROW_TABLE(fl__rollback, struct fl__rollback, "rollback", FL__ROLLBACK_ROWS)

static const char *const statements[] = {
#define X(name, sql) [FL__DB_##name] = (sql),
    FL__DB_STATEMENTS(X)
#undef X
};

const struct fl_db_kind fl__store_db = {
    .what = "state database",
    .id = 0x666c6664, /* "flfd" */
    .mode = 0640,
    .statements = statements,
    .n_statements = FL__DB_STATEMENT_COUNT,
    .schema = {schema, schema_more},
};
