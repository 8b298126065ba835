/*
 * The schema of the state database. Its version is the version of the whole folder: a release that
 * changes the format of any other file in the folder adds a migration too (libfl/db/db.h), so that
 * an older program rejects the folder before it reads that file.
 *
 * The columns of figures come from their rows (columns_impl.h). Numbers of 64 bits are stored as
 * signed; a real number is NULL for NaN.
 */
#include "server/store/store_db.h"

/* clang-format off */
static const char schema[] =
    "CREATE TABLE federation ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " name TEXT NOT NULL,"
    " layout BLOB NOT NULL," /* digest */
    " model TEXT NOT NULL," /* for people */
    " id BLOB NOT NULL," /* whose checkpoints are whose */
    /* Identities of the folder (generation.h). Client state has an identity of its own: a restored folder gets a new `identity`, while `kept_identity`, and so the client states, may stay valid (restored_folder.c). */
    " identity BLOB NOT NULL,"
    " kept_identity BLOB NOT NULL,"
    " meaning BLOB," /* compatibility digest of the settings; NULL: none recorded yet */
    FL__LINE_ROW(FL__ROW_COLUMN)
    /* Number of clients at the last selection, including those without a record. */
    " expected INTEGER NOT NULL DEFAULT 0,"
    " epoch INTEGER NOT NULL DEFAULT 0," /* first round whose client states are in a solver's sum */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE client ("
    " id INTEGER PRIMARY KEY," /* may have gaps; reused after a record is removed */
    " name TEXT NOT NULL UNIQUE,"
    " agent TEXT NOT NULL,"
    FL__SQL_CLIENT(FL__ROW_COLUMN)
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE round ("
    FL_ROUND_FIGURES(FL__ROW_COLUMN)
    " line INTEGER NOT NULL,"
    " sum INTEGER,"
    " PRIMARY KEY (round)"
    ") STRICT;"
    /* Rounds abandoned by a rollback (store_rollback.h). */
    "CREATE TABLE abandoned ("
    FL_ROUND_FIGURES(FL__ROW_COLUMN)
    " line INTEGER NOT NULL," /* that it was of */
    " sum INTEGER,"
    " PRIMARY KEY (line, round)"
    ") STRICT;"
    "CREATE TABLE open_round ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " round INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    FL__SIZE_ROW(FL__ROW_COLUMN)
    " planned INTEGER NOT NULL,"
    " meaning BLOB," /* compatibility digest when the round was opened */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE part ("
    " client INTEGER PRIMARY KEY REFERENCES client (id),"
    " place INTEGER NOT NULL," /* order of the selection */
    " state INTEGER NOT NULL,"
    FL__PART_ROW(FL__ROW_COLUMN)
    " divergence BLOB," /* float32 little-endian, one a unit */
    " units BLOB," /* one byte a unit */
    " rms BLOB NOT NULL," /* float64: root mean squares of what an upload holds */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE setting ("
    " name TEXT PRIMARY KEY,"
    " value TEXT NOT NULL,"
    " kind INTEGER NOT NULL," /* enum fl_setting_kind */
    " sum INTEGER"
    ") STRICT;"
    /* Changes of settings and of the model; `round` is the first round that they affect. */
    "CREATE TABLE change ("
    " id INTEGER PRIMARY KEY,"
    FL__CHANGE_ROW(FL__ROW_COLUMN)
    " sum INTEGER"
    ") STRICT;"
    "CREATE INDEX change_round ON change (round);"
    /* Pinned checkpoints. */
    "CREATE TABLE hold ("
    FL__HOLD_ROW(FL__ROW_COLUMN)
    " sum INTEGER,"
    " PRIMARY KEY (round)"
    ") STRICT;"
    /* The last error of each client. */
    "CREATE TABLE client_error ("
    " name TEXT PRIMARY KEY,"
    " at_ms INTEGER NOT NULL,"
    " up_ms INTEGER NOT NULL," /* monotonic clock (fl_client_rec) */
    " text TEXT NOT NULL,"
    " sum INTEGER"
    ") STRICT;"
    "CREATE INDEX client_error_at ON client_error (at_ms);"
    /* A rollback that an operator requested. */
    "CREATE TABLE rollback ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " round INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " last INTEGER NOT NULL DEFAULT 0," /* the last round that was abandoned */
    " line INTEGER NOT NULL DEFAULT 0," /* the abandoned generation; 0: not carried out yet */
    " sum INTEGER"
    ") STRICT;"
    /* The reason of a pause: no round starts until an operator resumes. */
    "CREATE TABLE pause ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " reason TEXT NOT NULL,"
    " sum INTEGER"
    ") STRICT;";
/* clang-format on */

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
    .schema = schema,
};
