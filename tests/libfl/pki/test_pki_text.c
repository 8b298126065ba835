/* Names in certificates, rules that read them, the line that invites, times as text. */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "libfl/pki/invitation.h"
#include "libfl/pki/names.h"
#include "libfl/pki/when.h"
#include "tests/lib/suites.h"

TEST(a_name_comes_back_from_its_uri)
{
    struct fl_uri_name n;
    char uri[FL_NAME_URI_MAX];
    char longest[FL_IDENTITY_NAME_MAX];

    ck_assert_str_eq(fl_uri_make(uri, sizeof(uri), FL_ROLE_CLIENT, "fed-a", "edge_0.1"),
                     "fl://fed-a/client/edge_0.1");
    ck_assert_int_eq(fl_uri_parse(uri, strlen(uri), &n), FL_OK);
    ck_assert_int_eq(n.role, FL_ROLE_CLIENT);
    ck_assert_str_eq(n.federation, "fed-a");
    ck_assert_str_eq(n.name, "edge_0.1");
    (void)memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    (void)fl_uri_make(uri, sizeof(uri), FL_ROLE_SERVER, longest, longest);
    ck_assert_int_eq(fl_uri_parse(uri, strlen(uri), &n), FL_OK);
    ck_assert_str_eq(n.name, longest);
}

TEST(a_name_has_one_spelling)
{
    static const struct {
        const char *uri;
        size_t len;
        int code;
    } bad[] = {{"fl://fed/client/a/b", 0, FL_EFORMAT},
               {"fl://fed/client/", 0, FL_EFORMAT},
               {"fl://fed/client", 0, FL_EFORMAT},
               {"fl://fed//a", 0, FL_EFORMAT},
               {"fl:///client/a", 0, FL_EFORMAT},
               {"fl://fed/Client/a", 0, FL_EFORMAT},
               {"fl://fed/nobody/a", 0, FL_EFORMAT},
               {"fl://fed/client/%61", 0, FL_EFORMAT},
               {"fl://fed/client/a b", 0, FL_EFORMAT},
               {"fl://fed/client/a\0b", 19, FL_EFORMAT},
               {"fl://fed/client/.a", 0, FL_EFORMAT},
               {"fl://fed/client/a?x", 0, FL_EFORMAT},
               {"fl://", 0, FL_EFORMAT},
               {"spiffe://fed/client/a", 0, FL_ENOENT},
               {"", 0, FL_ENOENT}};
    struct fl_uri_name n;
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        size_t len = bad[i].len != 0 ? bad[i].len : strlen(bad[i].uri);

        ck_assert_msg(fl_uri_parse(bad[i].uri, len, &n) == bad[i].code, "%s", bad[i].uri);
    }
}

/* What rule `text` makes of a name in a certificate; "-" when it does not fit. */
static const char *made(const char *text, enum fl_san_kind kind, const char *name, size_t len)
{
    static char out[FL_IDENTITY_NAME_MAX + 16];
    char found[FL_IDENTITY_NAME_MAX];
    struct fl_rules *rules = NULL;
    struct fl_err err = {0};
    enum fl_role role;

    ck_assert_msg(fl_rules_create(&text, 1, &rules, NULL, &err) == FL_OK, "%s", err.msg);
    if (fl_rules_fit(rules, 0, kind, name, len != 0 ? len : strlen(name), found, &role)) {
        (void)snprintf(out, sizeof(out), "%s %s", fl_role_text(role), found);
    } else {
        (void)snprintf(out, sizeof(out), "-");
    }
    fl_rules_unref(rules);
    return out;
}

TEST(a_rule_reads_a_name_and_nothing_near_it)
{
    static const struct {
        const char *rule;
        enum fl_san_kind kind;
        const char *name;
        size_t len;
        const char *want;
    } cases[] = {
        {"client dns:{name}.edge.example.org", FL_SAN_DNS, "k7.edge.example.org", 0, "client k7"},
        {"client dns:{name}.edge.example.org", FL_SAN_DNS, "K7.Edge.Example.ORG", 0, "client k7"},
        {"client dns:{name}.edge.example.org", FL_SAN_DNS, "a.b.edge.example.org", 0, "-"},
        {"client dns:{name}.edge.example.org", FL_SAN_DNS, ".edge.example.org", 0, "-"},
        {"client dns:{name}.edge.example.org", FL_SAN_DNS, "*.edge.example.org", 0, "-"},
        {"client dns:{name}.edge.example.org", FL_SAN_DNS, "k7.edge.example.org.evil.com", 0, "-"},
        {"client dns:{name}.edge.example.org", FL_SAN_DNS, "k7\0.edge.example.org", 20, "-"},
        {"client dns:{name}.edge.example.org", FL_SAN_CN, "k7.edge.example.org", 0, "-"},
        {"client dns:fl-{name}.example.org", FL_SAN_DNS, "fl-9.example.org", 0, "client 9"},
        {"client dns:aa{name}aa", FL_SAN_DNS, "aaa", 0, "-"}, /* head and tail do not overlap */
        {"admin email:{name}@ops.example.org", FL_SAN_EMAIL, "Jane.Doe@OPS.example.org", 0,
         "admin Jane.Doe"},
        {"admin email:{name}@ops.example.org", FL_SAN_EMAIL, "jane@ops.example.org@evil.com", 0,
         "-"},
        {"admin email:jane@example.org as boss", FL_SAN_EMAIL, "jane@Example.org", 0, "admin boss"},
        {"admin email:jane@example.org as boss", FL_SAN_EMAIL, "Jane@example.org", 0, "-"},
        {"admin email:jane@example.org as boss", FL_SAN_EMAIL, "jane@example.org.evil", 0, "-"},
        {"client uri:spiffe://example.org/fl/{name}", FL_SAN_URI, "spiffe://example.org/fl/k7", 0,
         "client k7"},
        {"client uri:spiffe://example.org/fl/{name}", FL_SAN_URI, "spiffe://example.org/fl/a/b", 0,
         "-"},
        {"client uri:spiffe://example.org/fl/{name}", FL_SAN_URI, "spiffe://Example.org/fl/k7", 0,
         "-"},
        {"client cn:{name}", FL_SAN_CN, "edge-001", 0, "client edge-001"},
        {"client cn:{name}", FL_SAN_CN, "edge 001", 0, "-"},
        {"client cn:{name}", FL_SAN_CN, "", 0, "-"},
        {"client cn:Host 7 of us as k7", FL_SAN_CN, "Host 7 of us", 0, "client k7"},
    };
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *got = made(cases[i].rule, cases[i].kind, cases[i].name, cases[i].len);

        ck_assert_msg(strcmp(got, cases[i].want) == 0, "%s of %s is %s", cases[i].rule,
                      cases[i].name, got);
    }
}

TEST(a_rule_that_says_nothing_is_refused)
{
    static const char *const bad[] = {"",
                                      "client",
                                      "client ",
                                      "client dns",
                                      "client dns:",
                                      "server dns:{name}",
                                      "Client dns:{name}",
                                      "client ip:{name}",
                                      "client dns:fixed.example.org",
                                      "client dns:{name}.{name}",
                                      "client dns:{name} as x",
                                      "client dns:x as ",
                                      "client dns:x as a b",
                                      "client dns:x as ../x"};
    struct fl_rules *rules = NULL;
    const char *two[2] = {"client cn:{name}", NULL};
    const char *many[FL_RULES_MAX + 1];
    char large[FL_RULE_TEXT_MAX + 32];
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct fl_err err = {0};
        size_t which = 9;

        two[1] = bad[i];
        ck_assert_msg(fl_rules_create(two, 2, &rules, &which, &err) == FL_ECONF, "%s", bad[i]);
        ck_assert_uint_eq(which, 1);
        ck_assert_ptr_nonnull(strstr(err.msg, bad[i]));
        ck_assert_ptr_nonnull(strstr(err.msg, "client dns:{name}.edge.example.org"));
    }
    (void)memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    (void)memcpy(large, "client cn:{name}", 16);
    two[1] = large;
    ck_assert_int_eq(fl_rules_create(two, 2, &rules, NULL, NULL), FL_ECONF);
    for (i = 0; i <= FL_RULES_MAX; i++) {
        many[i] = "client cn:{name}";
    }
    ck_assert_int_eq(fl_rules_create(many, FL_RULES_MAX + 1, &rules, NULL, NULL), FL_ELIMIT);
}

static struct fl_invite sample(const char *host)
{
    struct fl_invite invite = {.n_addresses = 1};
    size_t i;

    invite.addresses[0].port = 7443;
    (void)snprintf(invite.addresses[0].host, sizeof(invite.addresses[0].host), "%s", host);
    (void)snprintf(invite.federation, sizeof(invite.federation), "fed-a");
    for (i = 0; i < sizeof(invite.pin); i++) {
        invite.pin[i] = (uint8_t)(255 - 7 * i);
    }
    for (i = 0; i < sizeof(invite.token); i++) {
        invite.token[i] = (uint8_t)(250 - i); /* with - and _ in it */
    }
    return invite;
}

TEST(an_invitation_comes_back_from_its_line)
{
    static const char *const hosts[] = {"fl.example.org", "192.0.2.7", "2001:db8::1", "::1"};
    char line[FL_INVITE_MAX];
    char more[FL_INVITE_MAX + 8];
    size_t i;

    for (i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct fl_invite in = sample(hosts[i]);
        struct fl_invite out;
        struct fl_err err = {0};

        ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, &err), FL_OK);
        ck_assert_ptr_null(strpbrk(line, " \t\r\n+/="));
        (void)snprintf(more, sizeof(more), " \t%s\r\n", line);
        ck_assert_msg(fl_invite_parse(more, strlen(more), &out, &err) == FL_OK, "%s", err.msg);
        ck_assert_uint_eq(out.n_addresses, 1);
        ck_assert_str_eq(out.addresses[0].host, in.addresses[0].host);
        ck_assert_str_eq(out.federation, in.federation);
        ck_assert_uint_eq(out.addresses[0].port, in.addresses[0].port);
        ck_assert_mem_eq(out.pin, in.pin, sizeof(in.pin));
        ck_assert_mem_eq(out.token, in.token, sizeof(in.token));
    }
    ck_assert_ptr_nonnull(strstr(line, "fl1:[::1]:7443:fed-a:"));
}

/* The line with byte `at` from its end changed to `c`, or cut there. */
static void bad_line(const char *line, size_t at, char c, const char *word)
{
    char text[FL_INVITE_MAX];
    struct fl_invite out;
    struct fl_err err = {0};
    size_t len = strlen(line);

    (void)memcpy(text, line, len + 1);
    if (c != '\0') {
        text[len - at] = c;
    } else {
        len -= at;
    }
    ck_assert_msg(fl_invite_parse(text, len, &out, &err) == FL_EFORMAT, "%.*s", (int)len, text);
    ck_assert_msg(strstr(err.msg, word) != NULL, "'%s' is not in: %s", word, err.msg);
    ck_assert_ptr_nonnull(strstr(err.msg, "flctl invite"));
    ck_assert_ptr_null(strstr(err.msg, line + strlen(line) - 24)); /* no token in a message */
}

TEST(a_bad_invitation_is_refused_and_its_token_not_repeated)
{
    struct fl_invite in = sample("host");
    char line[FL_INVITE_MAX];
    char large[2 * FL_INVITE_MAX];
    struct fl_invite out;
    struct fl_err err = {0};
    size_t i;

    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, NULL), FL_OK);
    bad_line(line, strlen(line), 'x', "does not begin with 'fl1:'");
    bad_line(line, strlen(line) - 2, '2', "version is not fl1");
    bad_line(line, 1, '\0', "token of 28 characters");
    bad_line(line, 10, '+', "token of 28 characters");
    bad_line(line, 10, ' ', "token of 28 characters");
    bad_line(line, 29, 'A', "token of 28 characters");
    bad_line(line, 40, '/', "hash of a key");
    bad_line(line, 30, 'B', "hash of a key"); /* another spelling of the same bytes */
    bad_line(line, 29 + 43 + 2, '!', "name of the federation");
    bad_line(line, 29 + 43 + 1 + strlen(in.federation), '-', "name of the federation");
    bad_line(line, 29 + 43 + 1 + 7, 'x', "port");
    bad_line(line, strlen(line) - 5, '*', "host");
    for (i = 1; i < strlen(line); i++) {
        ck_assert_int_eq(fl_invite_parse(line, i, &out, &err), FL_EFORMAT);
    }
    (void)memcpy(large, line, strlen(line));
    large[strlen(line) - (29 + 43 + 2)] = '\0'; /* no end of the name */
    ck_assert_int_eq(fl_invite_parse(large, strlen(line), &out, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "name of the federation"));
    ck_assert_int_eq(fl_invite_parse(" \n", 2, &out, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "the invitation is missing"));
    (void)memset(large, 'x', sizeof(large));
    ck_assert_int_eq(fl_invite_parse(large, sizeof(large), &out, &err), FL_EFORMAT);
    in = sample("not a host");
    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, &err), FL_EINVAL);
    in = sample("host");
    in.federation[0] = '-';
    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, &err), FL_EINVAL);
    in = sample("host");
    in.addresses[0].port = 0;
    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, &err), FL_EINVAL);
}

TEST(a_token_is_stored_as_its_hash_and_listed_by_its_prefix)
{
    static const uint8_t token[FL_TOKEN_SIZE] = {0xfb, 0xff, 0xbf, 'x'};
    uint8_t hash[32];
    char prefix[FL_TOKEN_PREFIX_TEXT];

    ck_assert_str_eq(fl_token_prefix(token, prefix), "-_-_");
    ck_assert_int_eq(fl_token_hash(token, hash), FL_OK);
    /* (printf '\373\377\277x'; head -c 17 /dev/zero) | sha256sum */
    ck_assert_mem_eq(hash, "\xee\xa7\x99\x65\x8d\xff\xfb\x00", 8);
}

TEST(times_and_spans_are_written_for_people)
{
    static const struct {
        int64_t s;
        const char *text;
    } spans[] = {{0, "0 seconds"},
                 {1, "1 second"},
                 {59, "59 seconds"},
                 {60, "1 minute"},
                 {-7199, "1 hour"},
                 {86399, "23 hours"},
                 {86400, "1 day"},
                 {31556951, "365 days"},
                 {31556952, "1 year"},
                 {1795198500, "56 years"},
                 {INT64_MIN, "292277024626 years"}};
    char out[FL_WHEN_TEXT];
    size_t i;

    for (i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        ck_assert_str_eq(fl_span_text(out, sizeof(out), spans[i].s), spans[i].text);
    }
    ck_assert_str_eq(fl_when_text(out, sizeof(out), 12), "1970-01-01 00:00:12Z");
    ck_assert_str_eq(fl_when_text(out, sizeof(out), 1795198500), "2026-11-20 18:15:00Z");
    ck_assert_str_eq(fl_when_text(out, sizeof(out), INT64_C(2147483648)), "2038-01-19 03:14:08Z");
    ck_assert_str_eq(fl_when_text(out, sizeof(out), INT64_C(4107542400)), "2100-03-01 00:00:00Z");
    ck_assert_str_eq(fl_when_text(out, sizeof(out), -1), "1969-12-31 23:59:59Z");
    ck_assert_str_eq(fl_when_text(out, sizeof(out), INT64_MAX), "9223372036854775807 s after 1970");
}

TEST(clocks_that_disagree_are_named_with_both_times)
{
    static const int64_t ours = INT64_C(1795198500000); /* 2026-11-20 18:15:00Z */
    char out[FL_CLOCKS_TEXT];

    ck_assert_ptr_null(fl_clocks_text(out, ours, "server", 0)); /* not sent */
    ck_assert_ptr_null(fl_clocks_text(out, ours, "server", (uint64_t)ours));
    ck_assert_ptr_null(fl_clocks_text(out, ours, "server", (uint64_t)ours + 59999));
    ck_assert_ptr_null(fl_clocks_text(out, ours, "server", (uint64_t)ours - 59999));
    ck_assert_ptr_nonnull(fl_clocks_text(out, ours, "server", (uint64_t)ours - 60000));
    ck_assert_str_eq(fl_clocks_text(out, ours, "client", (uint64_t)ours + 86400000),
                     "the clocks differ by 1 day (this host: 2026-11-20 18:15:00Z, the client: "
                     "2026-11-21 18:15:00Z); set the wrong one (timedatectl)");
    ck_assert_ptr_nonnull(
        strstr(fl_clocks_text(out, -5, "server", (uint64_t)ours), "(this host: 1970-01-01 "));
    ck_assert_ptr_nonnull(fl_clocks_text(out, ours, "server", UINT64_MAX));
}

TEST(an_invitation_has_up_to_eight_addresses_in_their_order)
{
    struct fl_invite in = sample("fl.example.org");
    struct fl_invite out;
    struct fl_err err = {0};
    char line[FL_INVITE_MAX];
    char more[FL_INVITE_MAX + 16];
    size_t i;

    for (i = 1; i < FL_INVITE_ADDRESSES; i++) {
        in.addresses[i] = in.addresses[0];
        (void)memset(in.addresses[i].host, 'a' + (int)i, FL_INVITE_HOST_MAX - 1);
        in.addresses[i].port = (uint16_t)(65535 - i);
    }
    (void)snprintf(in.addresses[1].host, sizeof(in.addresses[1].host), "2001:db8::1");
    in.n_addresses = FL_INVITE_ADDRESSES;
    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(line, "fl1:fl.example.org:7443,[2001:db8::1]:65534,ccc"));
    ck_assert_msg(fl_invite_parse(line, strlen(line), &out, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(out.n_addresses, FL_INVITE_ADDRESSES);
    for (i = 0; i < FL_INVITE_ADDRESSES; i++) {
        ck_assert_str_eq(out.addresses[i].host, in.addresses[i].host);
        ck_assert_uint_eq(out.addresses[i].port, in.addresses[i].port);
    }
    (void)snprintf(more, sizeof(more), "fl1:a:1,%s", line + strlen("fl1:"));
    ck_assert_int_eq(fl_invite_parse(more, strlen(more), &out, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "more than 8 addresses"));
    in.n_addresses = 2;
    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, &err), FL_OK);
    *strchr(line, ',') = ':';
    ck_assert_int_eq(fl_invite_parse(line, strlen(line), &out, &err), FL_EFORMAT);
    (void)snprintf(more, sizeof(more), "fl1:a:1,,%s", strchr(line, '['));
    ck_assert_int_eq(fl_invite_parse(more, strlen(more), &out, &err), FL_EFORMAT);
    in.n_addresses = 0;
    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &in, &err), FL_EINVAL);
}
