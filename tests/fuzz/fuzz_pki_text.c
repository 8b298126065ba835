/* Names in certificates, rules, invitations: what is read is written back as it was. */

#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/pki/invitation.h"
#include "libfl/pki/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void uri(const char *text, size_t len)
{
    struct fl_uri_name name;
    char again[FL_NAME_URI_MAX];

    if (fl_uri_parse(text, len, &name) == FL_OK) {
        (void)fl_uri_make(again, sizeof(again), name.role, name.federation, name.name);
        FL_REQUIRE(strlen(again) == len && memcmp(again, text, len) == 0);
    }
}

static void invitation(const char *text, size_t len)
{
    struct fl_invite invite;
    struct fl_err err = {0};
    char again[FL_INVITE_MAX];

    if (fl_invite_parse(text, len, &invite, &err) == FL_OK) {
        FL_REQUIRE(fl_invite_write(again, sizeof(again), &invite, &err) == FL_OK);
        FL_REQUIRE(memmem(text, len, "fl1:", 4) != NULL);
        FL_REQUIRE(fl_invite_parse(again, strlen(again), &invite, &err) == FL_OK);
    }
}

/* A rule in the first line, what it reads in the rest. */
static void rule(const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len);
    struct fl_rules *rules = NULL;
    char line[1024];
    const char *lines[1] = {line};
    char name[FL_IDENTITY_NAME_MAX];
    enum fl_role role;
    int kind;

    if (end == NULL || (size_t)(end - text) >= sizeof(line)) {
        return;
    }
    (void)snprintf(line, sizeof(line), "%.*s", (int)(end - text), text);
    if (fl_rules_create(lines, 1, &rules, NULL, NULL) != FL_OK) {
        return;
    }
    for (kind = FL_SAN_DNS; kind <= FL_SAN_CN; kind++) {
        if (fl_rules_fit(rules, 0, (enum fl_san_kind)kind, end + 1, len - (size_t)(end + 1 - text),
                         name, &role))
        {
            FL_REQUIRE(fl_name_valid(name));
        }
    }
    fl_rules_unref(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uri((const char *)data, size);
    invitation((const char *)data, size);
    rule((const char *)data, size);
    return 0;
}
