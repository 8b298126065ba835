/*
 * The schema of the state database. Its version stands for the whole folder: a release that changes
 * the format of another file in it adds a migration too (libfl/db/db.h), so that the program before
 * it refuses the folder before it reads that file.
 *
 * The columns of figures come from their rows (columns_impl.h). Numbers of 64 bits are stored as
 * signed; a real number is NULL for NaN.
 */
#include "server/store/db.h"

static const char schema[] =
    "CREATE TABLE federation ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " name TEXT NOT NULL,"
    " layout BLOB NOT NULL," /* digest */
    " model TEXT NOT NULL,"  /* for people */
    " id BLOB NOT NULL,"     /* whose checkpoints are whose */
    /* What all of it was made under (line.h). What clients keep has an identity of its own: a
       folder that was restored gets another one, and what clients keep goes on (restored.c). */
    " identity BLOB NOT NULL,"
    " kept_identity BLOB NOT NULL,"
    " meaning BLOB," /* digest of the settings; NULL: none were written down yet */
    " line INTEGER NOT NULL DEFAULT 1,"
    " kept_line INTEGER NOT NULL DEFAULT 1,"
    " kept_since INTEGER NOT NULL DEFAULT 0,"
    " used_round INTEGER NOT NULL DEFAULT 0,"
    " used_attempt INTEGER NOT NULL DEFAULT 0,"
    /* How many clients there were at the last selection, with those that have no record. */
    " expected INTEGER NOT NULL DEFAULT 0,"
    " epoch INTEGER NOT NULL DEFAULT 0," /* first round whose kept values are in a solver's sum */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE client ("
    " id INTEGER PRIMARY KEY," /* may have gaps, and be another's after the record is gone */
    " name TEXT NOT NULL UNIQUE,"
    " agent TEXT NOT NULL," FL__SQL_CLIENT(
        FL__SQL_COLUMN) " sum INTEGER"
                        ") STRICT;"
                        "CREATE TABLE round (" FL_ROUND_FIGURES(
                            FL__SQL_COLUMN) " line INTEGER NOT NULL,"
                                            " sum INTEGER,"
                                            " PRIMARY KEY (round)"
                                            ") STRICT;"
                                            "CREATE TABLE abandoned (" FL_ROUND_FIGURES(
                                                FL__SQL_COLUMN) /* went back behind (rollback.h) */
    " line INTEGER NOT NULL,"                                   /* that it was of */
    " sum INTEGER,"
    " PRIMARY KEY (line, round)"
    ") STRICT;"
    "CREATE TABLE open_round ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " round INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " planned INTEGER NOT NULL,"
    " n_selected INTEGER NOT NULL,"
    " population INTEGER NOT NULL,"
    " members INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL,"
    " meaning BLOB," /* as of the federation when it was opened */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE part ("
    " client INTEGER PRIMARY KEY REFERENCES client (id),"
    " place INTEGER NOT NULL," /* order of the selection */
    " state INTEGER NOT NULL,"
    " samples INTEGER NOT NULL,"
    " steps INTEGER NOT NULL,"
    " train_loss REAL,"
    " divergence BLOB," /* float32 little-endian, one a unit */
    " units BLOB,"      /* one byte a unit */
    " upload_bytes INTEGER NOT NULL,"
    " previous_dot REAL,"
    " received_samples INTEGER NOT NULL,"
    " received_correct INTEGER NOT NULL,"
    " received_loss REAL," /* a sum */
    " trained_samples INTEGER NOT NULL,"
    " trained_correct INTEGER NOT NULL,"
    " trained_loss REAL,"
    " rms BLOB NOT NULL," /* float64: root mean squares of what an upload holds */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE setting ("
    " name TEXT PRIMARY KEY,"
    " value TEXT NOT NULL,"
    " kind INTEGER NOT NULL," /* enum fl_setting_kind */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE change ("
    " id INTEGER PRIMARY KEY,"
    " round INTEGER NOT NULL," /* the first that it holds for */
    " line INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " name TEXT NOT NULL,"
    " before TEXT NOT NULL,"
    " after TEXT NOT NULL,"
    " sum INTEGER"
    ") STRICT;"
    "CREATE INDEX change_round ON change (round);"
    "CREATE TABLE hold (" /* checkpoints that stay until they are released */
    " round INTEGER PRIMARY KEY,"
    " reason TEXT NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE client_error (" /* the last thing that went wrong with each client */
    " name TEXT PRIMARY KEY,"
    " at_ms INTEGER NOT NULL,"
    " up_ms INTEGER NOT NULL," /* on a clock that nobody sets (fl_client_rec) */
    " text TEXT NOT NULL,"
    " sum INTEGER"
    ") STRICT;"
    "CREATE INDEX client_error_at ON client_error (at_ms);"
    "CREATE TABLE rollback (" /* an operator's command that the federation goes back */
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " round INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " last INTEGER NOT NULL DEFAULT 0," /* the last round that was abandoned */
    " line INTEGER NOT NULL DEFAULT 0," /* that was left; 0: not carried out yet */
    " sum INTEGER"
    ") STRICT;"
    "CREATE TABLE pause (" /* no round begins, for this reason, until an operator resumes */
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " reason TEXT NOT NULL,"
    " sum INTEGER"
    ") STRICT;";

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
