#ifndef FL_STORE_COLUMNS_IMPL_H
#define FL_STORE_COLUMNS_IMPL_H

/*
 * SQL and the values of a row from the tables of figures: FL_ROUND_FIGURES(FL__SQL_NAME) is the
 * list of columns, FL_ROUND_FIGURES(FL__SQL_BIND) binds the values of `rec` to `q` in their order.
 * A list ends with a comma, for none is all of a statement.
 */

#include "server/core/records.h"

#define FL__SQL_NAME(type, member, ...)   #member ", "
#define FL__SQL_NAME_A(type, member, ...) "a." #member ", "
/* In CREATE TABLE. */
#define FL__SQL_COLUMN(type, member, ...) #member FL__SQL_TYPE_##type ", "
#define FL__SQL_TYPE_U64                  " INTEGER NOT NULL"
#define FL__SQL_TYPE_U32                  " INTEGER NOT NULL"
#define FL__SQL_TYPE_F64                  " REAL"
#define FL__SQL_TYPE_BOOL                 " INTEGER NOT NULL"

#define FL__SQL_MARK(type, member, ...) "?, "
#define FL__SQL_SET(type, member, ...)  #member " = ?, "

#define FL__SQL_BIND(type, member, ...) FL__SQL_BIND_##type(q, rec->member);
#define FL__SQL_BIND_U64(q, value)      fl_query_u64(q, value)
#define FL__SQL_BIND_U32(q, value)      fl_query_u64(q, value)
#define FL__SQL_BIND_F64(q, value)      fl_query_f64(q, value)
#define FL__SQL_BIND_BOOL(q, value)     fl_query_u64(q, (value) ? 1 : 0)

#define FL__SQL_READ(type, member, ...) rec->member = FL__SQL_READ_##type(q);
#define FL__SQL_READ_U64(q)             fl_column_u64(q)
#define FL__SQL_READ_U32(q)             (uint32_t) fl_column_u64(q)
#define FL__SQL_READ_F64(q)             fl_column_f64(q)
#define FL__SQL_READ_BOOL(q)            (fl_column_u64(q) != 0)

#define FL__SQL_ROUND        FL_ROUND_FIGURES(FL__SQL_NAME)
#define FL__SQL_CLIENT(each) FL_CLIENT_FIGURES(each) FL_CLIENT_STATE(each)

#endif
