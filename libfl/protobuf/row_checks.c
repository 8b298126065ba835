/*
 * Checks of single fields, which name them by their path. Pure functions, any thread.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/base/str.h"
#include "libfl/protobuf/message_rows.h"

/* Writes "Message.field.field" and returns its length, which is below `size`. */
static size_t write_path(const struct fl_pb_at *at, char *out, size_t size)
{
    size_t n = at->up != NULL ? write_path(at->up, out, size) : 0;

    if (at->name != NULL) {
        int more = snprintf(out + n, size - n, "%s%s", n > 0 ? "." : "", at->name);

        n += more > 0 && (size_t)more < size - n ? (size_t)more : 0;
    }
    return n;
}

int fl_pb_refuse(const struct fl_pb_at *at, struct fl_err *err, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)fl_err_set(err, FL_EPROTO, "%s", text);
    return fl_pb_wrap(at, err, FL_EPROTO);
}

int fl_pb_wrap(const struct fl_pb_at *at, struct fl_err *err, int code)
{
    char path[256] = "";

    (void)write_path(at, path, sizeof(path));
    return fl_err_wrap(err, code, "%s", path);
}

int fl_pb_check_name(const struct fl_pb_at *at, const char *value, struct fl_err *err)
{
    char quoted[64];

    if (fl_name_valid(value)) {
        return FL_OK;
    }
    return fl_pb_refuse(
        at, err, "%s is not a name (1 to %d of [A-Za-z0-9._-], not starting with a dot)",
        fl_log_quote(quoted, sizeof(quoted), value, strlen(value)), FL_NAME_MAX - 1);
}

int fl_pb_check_optional_name(const struct fl_pb_at *at, const char *value, struct fl_err *err)
{
    return value[0] == '\0' ? FL_OK : fl_pb_check_name(at, value, err);
}

int fl_pb_check_text(const struct fl_pb_at *at, const char *value, struct fl_err *err)
{
    size_t len = strlen(value);
    const uint8_t *s;
    size_t i = 0;

    if (len > FL_PB_MAX_TEXT) {
        return fl_pb_refuse(at, err, "%zu bytes of text, at most %d are taken", len,
                            FL_PB_MAX_TEXT);
    }
    s = (const uint8_t *)value;
    while (i < len) {
        size_t n = fl_str_utf8(s + i, len - i);

        if (n == 0) {
            return fl_pb_refuse(at, err, "the text is not UTF-8");
        }
        i += n;
    }
    return FL_OK;
}

int fl_pb_check_count(const struct fl_pb_at *at, size_t n, size_t max, struct fl_err *err)
{
    if (n > max) {
        return fl_pb_refuse(at, err, "%zu entries, at most %zu are taken", n, max);
    }
    return FL_OK;
}

int fl_pb_check_range(const struct fl_pb_at *at, uint64_t value, uint64_t min, uint64_t max,
                      struct fl_err *err)
{
    if (value < min || value > max) {
        return fl_pb_refuse(at, err,
                            "%" PRIu64 " is out of range, expected %" PRIu64 " to %" PRIu64, value,
                            min, max);
    }
    return FL_OK;
}
