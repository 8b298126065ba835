#ifndef FL_STORE_COLUMNS_IMPL_H
#define FL_STORE_COLUMNS_IMPL_H

/*
 * The columns of tables as rows X(type, column, field, …): CREATE TABLE, the lists of statements
 * and the code that binds and reads a record come from them, in one order.
 * FL__PART_ROW(FL__ROW_NAME) is the list of columns, FL__PART_ROW(FL__ROW_BIND) binds the fields of
 * `rec` to `q`. Every list ends with a comma, since no list is a whole statement. Figures are rows
 * X(type, member, …) of libfl/figures: their column is the member.
 */

#include "server/core/records.h"

/* A text that is read is borrowed until the next row. */
#define FL__LINE_ROW(X)                        \
    X(U64, line, line)                         \
    X(U64, state_generation, state_generation) \
    X(U64, kept_since, kept_since)             \
    X(U64, used_round, used_round)             \
    X(U64, used_attempt, used_attempt)

#define FL__SIZE_ROW(X)            \
    X(U32, n_selected, selected)   \
    X(U32, population, population) \
    X(U32, members, members)       \
    X(U64, epoch, epoch)

#define FL__PART_ROW(X)                        \
    X(U64, samples, samples)                   \
    X(U64, steps, steps)                       \
    X(F64, train_loss, train_loss)             \
    X(U64, upload_bytes, upload_bytes)         \
    X(F64, previous_dot, previous_dot)         \
    X(U64, received_samples, received.samples) \
    X(U64, received_correct, received.correct) \
    X(F64, received_loss, received.loss_sum)   \
    X(U64, trained_samples, trained.samples)   \
    X(U64, trained_correct, trained.correct)   \
    X(F64, trained_loss, trained.loss_sum)

#define FL__CHANGE_ROW(X)   \
    X(U64, round, round)    \
    X(U64, line, line)      \
    X(U64, at_ms, at_ms)    \
    X(TEXT, name, name)     \
    X(TEXT, before, before) \
    X(TEXT, after, after)

#define FL__HOLD_ROW(X)     \
    X(U64, round, round)    \
    X(TEXT, reason, reason) \
    X(U64, at_ms, at_ms)

#define FL__ROW_NAME(type, column, ...)   #column ", "
#define FL__ROW_MARK(type, column, ...)   "?, "
#define FL__ROW_SET(type, column, ...)    #column " = ?, "
#define FL__ROW_COLUMN(type, column, ...) #column FL__COLUMN_##type ", "
#define FL__ROW_BIND(type, column, field) FL__BIND_##type(q, rec->field);
#define FL__ROW_READ(type, column, field) rec->field = FL__READ_##type(q);

/* For figures, whose member name is the column name. */
#define FL__SQL_NAME_A(type, member, ...) "a." #member ", "
#define FL__SQL_BIND(type, member, ...)   FL__ROW_BIND(type, member, member)
#define FL__SQL_READ(type, member, ...)   FL__ROW_READ(type, member, member)

#define FL__COLUMN_U64  " INTEGER NOT NULL"
#define FL__COLUMN_U32  " INTEGER NOT NULL"
#define FL__COLUMN_F64  " REAL" /* NULL for NaN */
#define FL__COLUMN_BOOL " INTEGER NOT NULL"
#define FL__COLUMN_TEXT " TEXT NOT NULL"

#define FL__BIND_U64(q, value)  fl_query_u64(q, value)
#define FL__BIND_U32(q, value)  fl_query_u64(q, value)
#define FL__BIND_F64(q, value)  fl_query_f64(q, value)
#define FL__BIND_BOOL(q, value) fl_query_u64(q, (value) ? 1 : 0)
#define FL__BIND_TEXT(q, value) fl_query_text(q, value)

#define FL__READ_U64(q)  fl_column_u64(q)
#define FL__READ_U32(q)  (uint32_t) fl_column_u64(q)
#define FL__READ_F64(q)  fl_column_f64(q)
#define FL__READ_BOOL(q) (fl_column_u64(q) != 0)
#define FL__READ_TEXT(q) fl_column_text(q)

#define FL__SQL_ROUND        FL_ROUND_FIGURES(FL__ROW_NAME)
#define FL__SQL_CLIENT(each) FL_CLIENT_FIGURES(each) FL_CLIENT_STATE(each)

#endif
