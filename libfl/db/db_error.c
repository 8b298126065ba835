/* The errors of SQLite as ours. */
#include <string.h>

#include "libfl/db/db.h"
#include "libfl/db/db_impl.h"

static int code_of(int rc)
{
    switch (rc & 0xFF) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return FL_OK;
    case SQLITE_NOMEM:
        return FL_ENOMEM;
    case SQLITE_FULL:
        return FL_ENOSPC;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return FL_EPERM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return FL_EINUSE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return FL_EFORMAT;
    case SQLITE_CONSTRAINT:
        return FL_ESTATE;
    default:
        return FL_EIO;
    }
}

int fl_db_error(const struct fl_db *db, struct fl_err *err)
{
    int rc = db->handle != NULL ? sqlite3_extended_errcode(db->handle) : SQLITE_NOMEM;
    int code = code_of(rc);
    int os = 0;

    if (db->handle != NULL && ((rc & 0xFF) == SQLITE_CANTOPEN || (rc & 0xFF) == SQLITE_IOERR)) {
        os = sqlite3_system_errno(db->handle);
        code = os != 0 ? fl_err_from_errno(os) : code;
    }
    /* SQLite reported an error, so "no error" here means that its code was overwritten. */
    return fl_err_set(err, code != FL_OK ? code : FL_EIO, "%s '%s': %s%s%s", db->kind->what,
                      db->path,
                      db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc),
                      os != 0 ? ": " : "", os != 0 ? strerror(os) : "");
}
