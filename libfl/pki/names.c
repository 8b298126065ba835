#include "libfl/pki/names.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"

#define FL_URI_SCHEME "fl://"

static const char *const roles[] = {"nobody", "client", "server", "admin"};

const char *fl_role_text(enum fl_role role)
{
    return (size_t)role < sizeof(roles) / sizeof(roles[0]) ? roles[role] : roles[0];
}

const char *fl_uri_make(char *out, size_t size, enum fl_role role, const char *federation,
                        const char *name)
{
    int n;

    FL_REQUIRE(role != FL_ROLE_NONE && fl_name_valid(federation) && fl_name_valid(name));
    n = snprintf(out, size, FL_URI_SCHEME "%s/%s/%s", federation, fl_role_text(role), name);
    FL_REQUIRE(n > 0 && (size_t)n < size);
    return out;
}

/* The length of the part up to the next slash, or to the end. */
static size_t uri_part_len(const char *p, const char *end)
{
    const char *slash = memchr(p, '/', (size_t)(end - p));

    return (size_t)((slash != NULL ? slash : end) - p);
}

static bool uri_take_name(char out[FL_IDENTITY_NAME_MAX], const char *p, size_t len)
{
    if (len >= FL_IDENTITY_NAME_MAX) {
        return false;
    }
    (void)memcpy(out, p, len);
    out[len] = '\0';
    /* A NUL inside would truncate the name. */
    return strlen(out) == len && fl_name_valid(out);
}

int fl_uri_parse(const char *uri, size_t len, struct fl_uri_name *ret)
{
    struct fl_uri_name name = {.role = FL_ROLE_NONE};
    const char *end = uri + len;
    const char *p = uri;
    size_t n;
    size_t i;

    if (len < strlen(FL_URI_SCHEME) || memcmp(uri, FL_URI_SCHEME, strlen(FL_URI_SCHEME)) != 0) {
        return FL_ENOENT;
    }
    p += strlen(FL_URI_SCHEME);
    n = uri_part_len(p, end);
    if (!uri_take_name(name.federation, p, n) || p + n == end) {
        return FL_EFORMAT;
    }
    p += n + 1;
    n = uri_part_len(p, end);
    for (i = 1; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strlen(roles[i]) == n && memcmp(roles[i], p, n) == 0) {
            name.role = (enum fl_role)i;
        }
    }
    if (name.role == FL_ROLE_NONE || p + n == end) {
        return FL_EFORMAT;
    }
    p += n + 1;
    if (!uri_take_name(name.name, p, (size_t)(end - p))) {
        return FL_EFORMAT;
    }
    *ret = name;
    return FL_OK;
}
