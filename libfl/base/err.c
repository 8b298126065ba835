#include "libfl/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fl_err_set(struct fl_err *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL) {
        return code;
    }
    err->code = code;
    va_start(ap, fmt);
    (void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    return code;
}

int fl_err_wrap(struct fl_err *err, int code, const char *fmt, ...)
{
    char inner[FL_ERR_BUF_SIZE];
    va_list ap;
    int n;

    if (err == NULL) {
        return code;
    }
    (void)snprintf(inner, sizeof(inner), "%s", fl_err_text(err, code));
    err->code = code;
    va_start(ap, fmt);
    n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(err->msg)) {
        size_t room = sizeof(err->msg) - (size_t)n;

        /* The end of the inner message is truncated first. */
        (void)snprintf(err->msg + n, room, ": %.*s", (int)room, inner);
    }
    return code;
}

const char *fl_strerror(int code)
{
    switch (code) {
    case FL_OK:
        return "no error";
#define X(name, num, msg) \
    case name:            \
        return msg;
        FL_ERR_MAP(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *fl_err_text(const struct fl_err *err, int code)
{
    return err != NULL && err->code != FL_OK && err->msg[0] != '\0' ? err->msg : fl_strerror(code);
}

int fl_err_from_errno(int errnum)
{
    switch (errnum) {
    case 0:
        return FL_OK;
    case ENOMEM:
    case EMFILE: /* like out of memory: temporary, and not an error of the file */
    case ENFILE:
        return FL_ENOMEM;
    case ENOENT:
    case ENOTDIR:
        return FL_ENOENT;
    case EEXIST:
        return FL_EEXIST;
    case EACCES:
    case EPERM:
    case EROFS:
        return FL_EPERM;
    case ENOSPC:
    case EFBIG: /* file size limit of the process */
    case EDQUOT:
        return FL_ENOSPC;
    case EADDRINUSE:
    case EBUSY:
        return FL_EINUSE;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
        return FL_EUNAVAIL;
    case ETIMEDOUT:
        return FL_ETIMEOUT;
    case EINVAL:
        return FL_EINVAL;
    default:
        return FL_EIO;
    }
}

void fl_require_failed(const char *file, int line, const char *cond)
{
    (void)fprintf(stderr, "%s:%d: requirement failed: %s\n", file, line, cond);
    abort();
}
