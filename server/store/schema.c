/*
 * The schema of the state database, as a list of migrations (libfl/db/db.h). Its version stands for
 * the whole folder: who changes the form of another file in it adds one too, so that an earlier
 * program refuses the folder before it looks at that file, and adds a stored state
 * (tests/integ/stored).
 */
#include "server/store/db.h"

static const char *const migrations[] = {
    /* 1: the first. Loss columns are NULL for NaN; 64-bit counters are stored as signed. */
    "CREATE TABLE federation ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " name TEXT NOT NULL,"
    " layout BLOB NOT NULL," /* digest */
    " model TEXT NOT NULL"   /* for people */
    ") STRICT;"
    "CREATE TABLE client ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " agent TEXT NOT NULL,"
    " samples INTEGER NOT NULL,"
    " score REAL,"
    " scored INTEGER NOT NULL,"
    " n_selected INTEGER NOT NULL,"
    " n_accepted INTEGER NOT NULL,"
    " n_rejected INTEGER NOT NULL,"
    " n_lost INTEGER NOT NULL,"
    " last_loss REAL,"
    " last_seen_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE round ("
    " round INTEGER PRIMARY KEY,"
    " attempt INTEGER NOT NULL,"
    " n_selected INTEGER NOT NULL,"
    " n_responders INTEGER NOT NULL,"
    " accuracy REAL,"
    " loss REAL,"
    " train_loss REAL,"
    " uplink_bytes INTEGER NOT NULL,"
    " feedback_bytes INTEGER NOT NULL,"
    " uplink_bytes_full INTEGER NOT NULL,"
    " downlink_bytes INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE open_round ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " round INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " planned INTEGER NOT NULL"
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
    " upload_bytes INTEGER NOT NULL"
    ") STRICT;",
    /* 2: counted rounds, what clients measured of personal models, attention. */
    "ALTER TABLE client ADD COLUMN counted_round INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE client ADD COLUMN counted_attempt INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE client ADD COLUMN counted_update INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE part ADD COLUMN previous_dot REAL DEFAULT 0;"
    "ALTER TABLE part ADD COLUMN received_samples INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE part ADD COLUMN received_correct INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE part ADD COLUMN received_loss REAL DEFAULT 0;" /* a sum */
    "ALTER TABLE part ADD COLUMN trained_samples INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE part ADD COLUMN trained_correct INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE part ADD COLUMN trained_loss REAL DEFAULT 0;"
    "ALTER TABLE round ADD COLUMN personal_accuracy REAL DEFAULT -1;"
    "ALTER TABLE round ADD COLUMN personal_mean REAL DEFAULT -1;"
    "ALTER TABLE round ADD COLUMN received_accuracy REAL DEFAULT -1;"
    "ALTER TABLE round ADD COLUMN received_mean REAL DEFAULT -1;"
    "ALTER TABLE round ADD COLUMN n_personal INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE round ADD COLUMN effective REAL DEFAULT 0;"
    "ALTER TABLE round ADD COLUMN self_weight REAL DEFAULT 0;",
    /* 3: how many clients the open round is of; 0: not known. */
    "ALTER TABLE open_round ADD COLUMN n_selected INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE open_round ADD COLUMN population INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE open_round ADD COLUMN members INTEGER NOT NULL DEFAULT 0;",
    /* 4: numbers of clients may have gaps, and be another's after the record is gone. How many
       clients there were at the last selection, with those that have no record; how many that
       were counted are forgotten. */
    "ALTER TABLE federation ADD COLUMN expected INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE federation ADD COLUMN departed INTEGER NOT NULL DEFAULT 0;"
    "UPDATE federation SET expected = (SELECT COUNT(*) FROM client WHERE samples > 0);",
    /* 5: whose checkpoints are whose; 16 random bytes, given at the next opening. */
    "ALTER TABLE federation ADD COLUMN id BLOB;",
    /*
     * 6: what all of it was made under (line.h). A folder of before has an identity and no
     * settings: its open attempt is begun again, for nothing says what its updates are.
     */
    "ALTER TABLE federation ADD COLUMN identity BLOB;"
    "ALTER TABLE federation ADD COLUMN meaning BLOB;" /* digest of the settings */
    "ALTER TABLE federation ADD COLUMN line INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE federation ADD COLUMN kept_line INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE federation ADD COLUMN kept_since INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE federation ADD COLUMN used_round INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE federation ADD COLUMN used_attempt INTEGER NOT NULL DEFAULT 0;"
    "UPDATE federation SET identity = randomblob(16);"
    "ALTER TABLE open_round ADD COLUMN meaning BLOB;"
    "ALTER TABLE round ADD COLUMN line INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE setting ("
    " name TEXT PRIMARY KEY,"
    " value TEXT NOT NULL,"
    " kind INTEGER NOT NULL" /* enum fl_setting_kind */
    ") STRICT;"
    "CREATE TABLE change ("
    " id INTEGER PRIMARY KEY,"
    " round INTEGER NOT NULL," /* the first that it holds for */
    " line INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " name TEXT NOT NULL,"
    " before TEXT NOT NULL,"
    " after TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX change_round ON change (round);"
    "CREATE TABLE hold (" /* checkpoints that stay until they are released */
    " round INTEGER PRIMARY KEY,"
    " reason TEXT NOT NULL,"
    " at_ms INTEGER NOT NULL"
    ") STRICT;",
    /* 7: the last thing that went wrong with each client. */
    "CREATE TABLE client_error ("
    " name TEXT PRIMARY KEY,"
    " at_ms INTEGER NOT NULL,"
    " text TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX client_error_at ON client_error (at_ms);",
    /* 8: rounds that the federation went back behind, and an operator's wish that it goes back
       (rollback.h). */
    "CREATE TABLE abandoned ("
    " line INTEGER NOT NULL," /* that it was of; the rest as in round */
    " round INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " n_selected INTEGER NOT NULL,"
    " n_responders INTEGER NOT NULL,"
    " accuracy REAL,"
    " loss REAL,"
    " train_loss REAL,"
    " uplink_bytes INTEGER NOT NULL,"
    " feedback_bytes INTEGER NOT NULL,"
    " uplink_bytes_full INTEGER NOT NULL,"
    " downlink_bytes INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL,"
    " personal_accuracy REAL,"
    " personal_mean REAL,"
    " received_accuracy REAL,"
    " received_mean REAL,"
    " n_personal INTEGER NOT NULL,"
    " effective REAL,"
    " self_weight REAL,"
    " PRIMARY KEY (line, round)"
    ") STRICT;"
    "CREATE TABLE rollback ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " round INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " last INTEGER NOT NULL DEFAULT 0," /* the last round that was abandoned */
    " line INTEGER NOT NULL DEFAULT 0"  /* that was left; 0: not carried out yet */
    ") STRICT;",
    /* 9: clients that are known no more and have a part in the open round; when clients were heard
       on a clock that nobody sets (fl_client_rec). It begins at 0: nobody is older than this. */
    "ALTER TABLE client ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE client ADD COLUMN seen_up_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE client_error ADD COLUMN up_ms INTEGER NOT NULL DEFAULT 0;",
    /* 10: a checksum in every row (libfl/db/sums.c). A table of a later migration has this column
       too. */
    "ALTER TABLE federation ADD COLUMN sum INTEGER;"
    "ALTER TABLE client ADD COLUMN sum INTEGER;"
    "ALTER TABLE round ADD COLUMN sum INTEGER;"
    "ALTER TABLE open_round ADD COLUMN sum INTEGER;"
    "ALTER TABLE part ADD COLUMN sum INTEGER;"
    "ALTER TABLE setting ADD COLUMN sum INTEGER;"
    "ALTER TABLE change ADD COLUMN sum INTEGER;"
    "ALTER TABLE hold ADD COLUMN sum INTEGER;"
    "ALTER TABLE client_error ADD COLUMN sum INTEGER;"
    "ALTER TABLE abandoned ADD COLUMN sum INTEGER;"
    "ALTER TABLE rollback ADD COLUMN sum INTEGER;"
    "ALTER TABLE migration ADD COLUMN sum INTEGER;",
    /* 11: no round begins, for this reason, until somebody resumes; no row: they do. */
    "CREATE TABLE pause ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " reason TEXT NOT NULL,"
    " sum INTEGER"
    ") STRICT;",
    /* 12: what clients keep has an identity of its own: a folder that was restored gets another
       one, and what clients keep need not begin anew for it (restored.c). */
    "ALTER TABLE federation ADD COLUMN kept_identity BLOB;"
    "UPDATE federation SET kept_identity = identity;",
    /* 13: responders that counted with fewer samples than they report. */
    "ALTER TABLE round ADD COLUMN n_capped INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE abandoned ADD COLUMN n_capped INTEGER NOT NULL DEFAULT 0;",
    /* 14: the first round whose kept values are in a solver's sum. Forgotten clients were in it for
       good before (`departed`, which is not read any more): then it restarts at zero. */
    "ALTER TABLE federation ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE open_round ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;"
    "UPDATE federation SET epoch = 1 + (SELECT COALESCE(MAX(round), 0) FROM"
    " (SELECT round FROM round UNION ALL SELECT round FROM open_round)) WHERE departed > 0;",
    /* 15: root mean squares of what an upload holds, the largest of a round in terms of the median,
       and how many were left out for it. */
    "ALTER TABLE part ADD COLUMN rms BLOB;"
    "ALTER TABLE round ADD COLUMN norm_ratio REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE abandoned ADD COLUMN norm_ratio REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE round ADD COLUMN n_left_out INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE abandoned ADD COLUMN n_left_out INTEGER NOT NULL DEFAULT 0;",
};

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
    .migrations = migrations,
    .n_migrations = sizeof(migrations) / sizeof(migrations[0]),
};
