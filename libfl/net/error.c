#include <stdarg.h>
#include <stdio.h>

#include "libfl/net/net_impl.h"

int fl_uv_err(int status)
{
    switch (status) {
    case 0:
        return FL_OK;
    case UV_ENOMEM:
    case UV_ENOBUFS:
        return FL_ENOMEM;
    case UV_EINVAL:
    case UV_EADDRNOTAVAIL:
    case UV_EAFNOSUPPORT:
    case UV_ENAMETOOLONG:
        return FL_EINVAL;
    case UV_ENOENT:
        return FL_ENOENT;
    case UV_EEXIST:
        return FL_EEXIST;
    case UV_EAGAIN:
        return FL_EAGAIN;
    case UV_ECANCELED:
        return FL_ECANCELED;
    case UV_ETIMEDOUT:
        return FL_ETIMEOUT;
    case UV_EADDRINUSE:
        return FL_EINUSE;
    case UV_EACCES:
    case UV_EPERM:
        return FL_EPERM;
    case UV_EMFILE:
    case UV_ENFILE:
        return FL_ELIMIT;
    case UV_ENOSPC:
        return FL_ENOSPC;
    case UV_ECONNREFUSED:
    case UV_ECONNRESET:
    case UV_ECONNABORTED:
    case UV_EPIPE:
    case UV_ENOTCONN:
    case UV_EHOSTUNREACH:
    case UV_ENETUNREACH:
    case UV_ENETDOWN:
    case UV_EOF:
        return FL_EUNAVAIL;
    default:
        return FL_EIO;
    }
}

int fl__uv_fail(struct fl_err *err, int status, const char *fmt, ...)
{
    char what[FL__TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return fl_err_set(err, fl_uv_err(status), "%s: %s", what, uv_strerror(status));
}
