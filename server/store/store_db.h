#ifndef FL_STORE_DB_H
#define FL_STORE_DB_H

/* The SQL statements of the state database; its schema is in schema.c. Private to server/store. */

#include "libfl/db/db.h"
#include "server/store/store.h"
#include "server/store/store_rows_impl.h"

/* clang-format off */
#define FL__DB_STATEMENTS(X)                                                                \
    X(GET_FEDERATION, "SELECT " FL_ROW_SELECT(FL__OWNER_ROWS) " FROM federation") \
    X(PUT_FEDERATION, "INSERT INTO federation " FL_ROW_VALUES(FL__FOLDER_ROWS)) \
    X(HAS_ROUND, "SELECT COUNT(*) FROM round WHERE round = ?")                              \
    X(GET_LINE, "SELECT " FL_ROW_SELECT(FL__GENERATION_ROWS) " FROM federation") \
    X(PUT_LINE, "UPDATE federation SET " FL_ROW_SET(FL__GENERATION_ROWS)) \
    X(GET_RESUMED, "SELECT expected, epoch, kept_since, used_round, used_attempt FROM federation") \
    X(GET_SETTINGS, "SELECT " FL_ROW_SELECT(FL__SETTING_ROWS) " FROM setting ORDER BY rowid") \
    X(DROP_SETTINGS, "DELETE FROM setting")                                                 \
    X(PUT_SETTING, "INSERT INTO setting " FL_ROW_VALUES(FL__SETTING_ROWS)) \
    X(PUT_CHANGE, "INSERT INTO change " FL_ROW_VALUES(FL__CHANGE_ROWS)) \
    X(GET_CHANGES, "SELECT " FL_ROW_SELECT(FL__CHANGE_ROWS) " FROM change" \
        " WHERE round BETWEEN ? AND ? ORDER BY id") \
    X(PUT_PIN, "INSERT OR REPLACE INTO pin " FL_ROW_VALUES(FL__PIN_ROWS)) \
    X(GET_PINS, "SELECT " FL_ROW_SELECT(FL__PIN_ROWS) " FROM pin ORDER BY round") \
    X(DROP_PIN, "DELETE FROM pin WHERE round = ?")                                        \
    X(DROP_SCORES, "UPDATE client SET scored = 0, score = 0")                               \
    X(GET_ATTEMPT, "SELECT round, attempt, (SELECT COUNT(*) FROM part WHERE state = ?) AS updates" \
        " FROM open_round WHERE EXISTS (SELECT 1 FROM part)") \
    X(REOPEN, "UPDATE open_round SET attempt = attempt + 1, planned = 0,"                   \
        " meaning = (SELECT meaning FROM federation)")                                      \
    X(LAST_ATTEMPT, "SELECT COALESCE(MAX(round), 0) AS used_round," \
        " COALESCE(MAX(attempt), 0) AS used_attempt FROM" \
        " (SELECT round, attempt FROM round UNION ALL" \
        " SELECT round, attempt FROM open_round) WHERE round > ?") \
    X(COUNT_CLIENTS, "SELECT COUNT(*) FROM client")                                         \
    X(DROP_CLIENT, "DELETE FROM client WHERE id = ?")                                       \
    X(MARK_CLIENT, "UPDATE client SET forgotten = 1 WHERE id = ?")                          \
    X(SET_EXPECTED, "UPDATE federation SET expected = ?")                                   \
    X(SET_EPOCH, "UPDATE federation SET epoch = ?")                                         \
    X(PUT_CLIENT, "INSERT INTO client " FL_ROW_VALUES(FL__CLIENT_ROWS)) \
    /* Hundreds of them in a commit: one that fails ends the transaction, so that SQLite need   */\
    /* not keep a copy of the page for each. */                                              \
    X(SET_CLIENT, "UPDATE OR ROLLBACK client SET " FL_ROW_SET(FL__CLIENT_FIGURES) \
        " WHERE id = :id AND name = :name") \
    X(SET_QUARANTINE, "UPDATE client SET " FL_ROW_SET(FL__QUARANTINE_ROWS) \
        " WHERE id = :id AND name = :name") \
    X(GET_CLIENTS, "SELECT " FL_ROW_SELECT(FL__CLIENT_ROWS) " FROM client ORDER BY id") \
    X(PUT_ERROR, "INSERT OR REPLACE INTO client_error " FL_ROW_VALUES(FL__CLIENT_ERROR_ROWS)) \
    X(DROP_ERROR, "DELETE FROM client_error WHERE name = ?")                                \
    X(DROP_ERRORS, "DELETE FROM client_error WHERE rowid < (SELECT rowid FROM client_error" \
        " ORDER BY rowid DESC LIMIT 1 OFFSET ?)")                                           \
    X(GET_ERRORS, "SELECT " FL_ROW_SELECT(FL__CLIENT_ERROR_ROWS) " FROM client_error ORDER BY rowid") \
    X(PUT_LABELS, "INSERT OR REPLACE INTO client_labels (labels, client)" \
        " SELECT ?, id FROM client WHERE name = ?") \
    X(GET_LABELS, "SELECT " FL_ROW_SELECT(FL__CLIENT_LABELS_ROWS) " FROM client_labels ORDER BY client") \
    X(PUT_CENTRAL, "INSERT OR REPLACE INTO central " FL_ROW_VALUES(FL__CENTRAL_ROWS)) \
    X(DROP_CENTRAL, "DELETE FROM central WHERE name = ?") \
    X(GET_CENTRAL, "SELECT " FL_ROW_SELECT(FL__CENTRAL_ROWS) " FROM central ORDER BY name") \
    X(NEWEST_UP, "SELECT MAX(COALESCE((SELECT MAX(seen_up_ms) FROM client), 0),"            \
        " COALESCE((SELECT MAX(up_ms) FROM client_error), 0))")                             \
    X(LAST_ROUND, "SELECT COALESCE(MAX(round), 0) FROM round")                              \
    X(COUNT_RECORDS, "SELECT (SELECT COUNT(*) FROM client) + (SELECT COUNT(*) FROM round)"  \
        " + (SELECT COUNT(*) FROM open_round)")                                             \
    X(GET_OPEN, "SELECT " FL__OPEN_ROWS(FL_ROW_NAME) \
        "meaning IS (SELECT meaning FROM federation) AS same FROM open_round") \
    X(PUT_OPEN, "INSERT OR REPLACE INTO open_round (" FL__OPEN_ROWS(FL_ROW_NAME) "one, meaning)" \
        " VALUES (" FL__OPEN_ROWS(FL_ROW_PARAM) "1, (SELECT meaning FROM federation))") \
    X(SET_PLANNED, "UPDATE open_round SET planned = 1")                                     \
    X(DROP_OPEN, "DELETE FROM open_round")                                                  \
    X(DROP_PARTS, "DELETE FROM part")                                                       \
    X(COUNT_PARTS, "SELECT COUNT(*) FROM part")                                             \
    /* Without a place: after all existing rows. */                                       \
    X(PUT_PART, "INSERT INTO part (" FL__PART_ROWS(FL_ROW_NAME) "place) VALUES (" \
        FL__PART_ROWS(FL_ROW_PARAM) \
        "COALESCE(?, (SELECT COALESCE(MAX(place) + 1, 0) FROM part)))") \
    X(SET_PART, "UPDATE part SET " FL_ROW_SET(FL__PART_FIGURES) " WHERE client = :client") \
    X(GET_PARTS, "SELECT " FL_ROW_SELECT(FL__PART_ROWS) " FROM part ORDER BY place") \
    X(PUT_PARTICIPATION, "INSERT INTO participation " FL_ROW_VALUES(FL__PARTICIPATION_ROWS)) \
    /* All but the newest; the index has what the inner query reads. */ \
    X(TRIM_PARTICIPATIONS, "DELETE FROM participation WHERE id <= (SELECT id FROM participation" \
        " INDEXED BY participation_round ORDER BY round DESC, id DESC LIMIT 1 OFFSET ?)") \
    X(TRIM_EVALUATED, "DELETE FROM participation WHERE state = ? AND id <= (SELECT id FROM participation" \
        " WHERE state = ? ORDER BY id DESC LIMIT 1 OFFSET ?)") \
    X(DROP_ABORTED, "DELETE FROM participation WHERE round = ? AND attempt <= ? AND aborted <> ''") \
    X(DROP_PARTICIPATIONS, "DELETE FROM participation WHERE round > ?") \
    X(GET_PARTICIPATIONS, "SELECT " FL_ROW_SELECT(FL__PARTICIPATION_ROWS) \
        " FROM participation WHERE id < ? AND state <= ? ORDER BY id DESC LIMIT ?") \
    X(GET_PARTICIPATIONS_ROUND, "SELECT " FL_ROW_SELECT(FL__PARTICIPATION_ROWS) \
        " FROM participation WHERE id < ? AND state <= ? AND round = ? ORDER BY id DESC LIMIT ?") \
    X(GET_PARTICIPATIONS_CLIENT, "SELECT " FL_ROW_SELECT(FL__PARTICIPATION_ROWS) \
        " FROM participation WHERE id < ? AND state <= ? AND client = ? ORDER BY id DESC LIMIT ?") \
    X(PUT_ROUND, "INSERT INTO round (" FL__ROUND_ROWS(FL_ROW_NAME) "generation) VALUES (" \
        FL__ROUND_ROWS(FL_ROW_PARAM) "(SELECT generation FROM federation))") \
    X(GET_ROUNDS, "SELECT " FL_ROW_SELECT(FL__ROUND_ROWS) \
        " FROM (SELECT * FROM round ORDER BY round DESC LIMIT ?) ORDER BY round") \
    X(GET_ROUNDS_BEFORE, "SELECT " FL_ROW_SELECT(FL__ROUND_ROWS) \
        " FROM round WHERE round < ? ORDER BY round DESC LIMIT ?") \
    X(GET_ROUND, "SELECT " FL_ROW_SELECT(FL__ROUND_ROWS) " FROM round WHERE round = ?") \
    X(EACH_ROUND, "SELECT " FL_ROW_SELECT(FL__ROUND_ROWS) " FROM round ORDER BY round") \
    X(EACH_LOSS, "SELECT round, train_loss FROM round ORDER BY round") \
    X(UNCOUNT, "UPDATE client SET counted_round = 0, counted_attempt = 0, counted_update = 0"\
        " WHERE counted_round > ?")                                                         \
    X(ABANDON_ROUNDS, "INSERT OR REPLACE INTO abandoned (" FL__ROUND_ROWS(FL_ROW_NAME) "generation)" \
        " SELECT " FL__ROUND_ROWS(FL_ROW_NAME) "generation FROM round WHERE round > ?") \
    /* The change that abandoned a round is the first rollback behind it, hence the first of a later generation. */\
    X(GET_ABANDONED, "SELECT " FL_ROW_SELECT(FL__ABANDONED_ROWS) " FROM (SELECT a.*," \
        " COALESCE(c.at_ms, 0) AS at_ms," \
        " COALESCE(substr(c.after, instr(c.after, ': ') + 2), '') AS reason" \
        " FROM abandoned AS a LEFT JOIN change AS c ON c.id = (SELECT MIN(id) FROM change" \
        " WHERE name = 'the model' AND generation > a.generation AND round <= a.round)" \
        " ORDER BY a.generation DESC, a.round DESC LIMIT ?) ORDER BY generation, round") \
    X(GET_ROLLBACK, "SELECT " FL_ROW_SELECT(FL__ROLLBACK_ROWS) " FROM rollback") \
    X(PUT_ROLLBACK, "INSERT OR REPLACE INTO rollback (" FL__ROLLBACK_ROWS(FL_ROW_NAME) "one)" \
        " VALUES (" FL__ROLLBACK_ROWS(FL_ROW_PARAM) "1)") \
    X(NOTE_ROLLBACK, "UPDATE rollback SET last = :last, generation = :generation") \
    X(DROP_ROLLBACK, "DELETE FROM rollback")                                                \
    X(GET_PAUSE, "SELECT reason FROM pause")                                                \
    X(PUT_PAUSE, "INSERT OR REPLACE INTO pause (one, reason) VALUES (1, ?)")                \
    X(DROP_PAUSE, "DELETE FROM pause")                                                      \
    X(DROP_PINS_AFTER, "DELETE FROM pin WHERE round > ?")                                 \
    X(DROP_ROUNDS, "DELETE FROM round WHERE round > ?")
/* clang-format on */

enum fl__db_statement {
#define X(name, sql) FL__DB_##name,
    FL__DB_STATEMENTS(X)
#undef X
        FL__DB_STATEMENT_COUNT
};

extern const struct fl_db_kind fl__store_db;

#endif
