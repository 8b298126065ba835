#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/net/address_range.h"
#include "libfl/net/proxy_rule.h"
#include "tests/lib/suites.h"

TESTS_APART("tests set environment variables");

/* Address ranges. */

static const struct {
    const char *range, *ip;
    bool has;
} ranges[] = {
    {"192.0.2.7", "192.0.2.7", true},
    {"192.0.2.7", "192.0.2.8", false},
    {"10.0.0.0/8", "10.255.1.2", true},
    {"10.0.0.0/8", "11.0.0.0", false},
    {"10.0.0.0/9", "10.127.0.1", true},
    {"10.0.0.0/9", "10.128.0.1", false},
    {"0.0.0.0/0", "203.0.113.9", true},
    {"0.0.0.0/0", "2001:db8::1", false},
    {"2001:db8::/32", "2001:db8:ffff::1", true},
    {"2001:db8::/33", "2001:db8:ffff::1", false},
    {"::/0", "2001:db8::1", true},
    {"::1", "::1", true},
    {"::1", "unix", false},
};

TEST_EACH(an_address_is_in_the_ranges_that_hold_it, ARRAY_LEN(ranges))
{
    struct fl_address_range range;
    struct fl_ip ip;

    ck_assert_int_eq(fl_address_range_parse(ranges[_i].range, &range, NULL), FL_OK);
    ck_assert_int_eq(fl_ip_parse(ranges[_i].ip, &ip) == FL_OK && fl_address_range_has(&range, &ip),
                     ranges[_i].has);
}

static const char *const peers[] = {"192.0.2.7:50312", "[2001:db8::1]:1", "0.0.0.0:0"};

TEST_EACH(the_name_of_a_peer_is_written_as_it_is_read, ARRAY_LEN(peers))
{
    const char *port = strrchr(peers[_i], ':') + 1;
    char out[FL_PEER_MAX];
    struct fl_ip ip;

    ck_assert_int_eq(fl_ip_of_peer(peers[_i], &ip), FL_OK);
    fl_ip_peer(&ip, (unsigned)strtoul(port, NULL, 10), out);
    ck_assert_str_eq(out, peers[_i]);
    ck_assert_int_eq(fl_ip_of_peer("unix", &ip), FL_EINVAL);
    ck_assert_int_eq(fl_ip_of_peer("[::1:5", &ip), FL_EINVAL);
}

static const char *const bad_ranges[] = {"",         "example.org", "10.0.0.0/33",
                                         "10.0.0/8", "::/129",      "10.0.0.0/",
                                         "/8",       "[::1]",       "10.0.0.1:5"};

TEST_EACH(a_text_that_is_no_range_is_refused_and_quoted, ARRAY_LEN(bad_ranges))
{
    struct fl_address_range range;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_address_range_parse(bad_ranges[_i], &range, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, bad_ranges[_i]));
}

/* The URL. */

static const struct {
    const char *text, *address, *user; /* address NULL: refused */
} urls[] = {
    {"http://proxy.example:3128", "proxy.example:3128", ""},
    {"HTTP://proxy.example:3128/", "proxy.example:3128", ""},
    {"proxy.example:3128", "proxy.example:3128", ""},
    {"http://[2001:db8::1]:8080", "[2001:db8::1]:8080", ""},
    {"http://ann:s3cret@10.0.0.1:3128", "10.0.0.1:3128", "ann:s3cret"},
    {"http://ann:p%40ss%3aw@10.0.0.1:3128", "10.0.0.1:3128", "ann:p@ss:w"},
    {"http://ann:a@b@10.0.0.1:3128", "10.0.0.1:3128", "ann:a@b"},
    {"http://ann@10.0.0.1:3128", "10.0.0.1:3128", "ann:"},
    {"https://proxy.example:3128", NULL, NULL},
    {"socks5://proxy.example:1080", NULL, NULL},
    {"http://proxy.example", NULL, NULL},
    {"http://proxy.example:0", NULL, NULL},
    {"http://*:3128", NULL, NULL},
    {"unix:/run/proxy.sock", NULL, NULL},
    {"http://ann:s3cret%0d@10.0.0.1:3128", NULL, NULL},
    {"http://ann:s3cret%4@10.0.0.1:3128", NULL, NULL},
    {"http://ann:s3cret@:3128", NULL, NULL},
    {"http://proxy.example:3128/path", NULL, NULL},
    {"", NULL, NULL},
};

TEST_EACH(the_url_of_a_proxy_is_read_or_refused_without_its_password, ARRAY_LEN(urls))
{
    struct fl_proxy proxy = {.key = NULL};
    struct fl_err err = {0};
    int rv = fl_proxy_parse(urls[_i].text, "https_proxy", &proxy, &err);

    if (urls[_i].address != NULL) {
        ck_assert_int_eq(rv, FL_OK);
        ck_assert_str_eq(proxy.address, urls[_i].address);
        ck_assert_str_eq(proxy.user, urls[_i].user);
    } else {
        ck_assert_int_eq(rv, FL_EINVAL);
        ck_assert_ptr_nonnull(strstr(err.msg, "https_proxy: expected http://HOST:PORT"));
        ck_assert_ptr_null(strstr(err.msg, "s3cret"));
    }
}

TEST(a_url_that_is_too_long_is_refused)
{
    struct fl_proxy proxy;
    char text[2000];

    (void)snprintf(text, sizeof(text), "http://%01000d:p@10.0.0.1:3128", 1);
    ck_assert_int_eq(fl_proxy_parse(text, "x", &proxy, NULL), FL_EINVAL);
    (void)snprintf(text, sizeof(text), "http://%0600d:3128", 1);
    ck_assert_int_eq(fl_proxy_parse(text, "x", &proxy, NULL), FL_EINVAL);
}

/* no_proxy. */

static const struct {
    const char *list, *address;
    bool has;
} lists[] = {
    {"", "fl.example.org:7443", false},
    {"*", "fl.example.org:7443", true},
    {"example.org", "fl.example.org:7443", true},
    {".example.org", "fl.example.org:7443", true},
    {".example.org", "example.org:7443", true},
    {"EXAMPLE.org", "fl.example.ORG:7443", true},
    {"example.org", "flexample.org:7443", false},
    {"ple.org", "example.org:7443", false},
    {"a.org, b.org ,example.org", "example.org:7443", true},
    {"example.org:7443", "example.org:7443", true},
    {"example.org:443", "example.org:7443", false},
    {"10.0.0.0/8", "10.1.2.3:7443", true},
    {"10.0.0.0/8", "11.1.2.3:7443", false},
    {"10.1.2.3", "10.1.2.3:7443", true},
    {"10.1.2.3:7443", "10.1.2.3:7443", true},
    {"2001:db8::1", "[2001:db8::1]:7443", true},
    {"[2001:db8::1]:7443", "[2001:db8::1]:7443", true},
    {"[2001:db8::1]:443", "[2001:db8::1]:7443", false},
    {", ,,", "example.org:7443", false},
    {".", "example.org:7443", false},
    {"", "127.0.0.1:7443", true},
    {"", "127.8.0.1:7443", true},
    {"", "[::1]:7443", true},
    {"", "localhost:7443", true},
    {"", "unix:/run/x", true},
};

TEST_EACH(no_proxy_lists_the_addresses_that_are_connected_directly, ARRAY_LEN(lists))
{
    struct fl_address address;

    ck_assert_int_eq(fl_address_parse(lists[_i].address, &address, NULL), FL_OK);
    ck_assert_int_eq(fl_no_proxy_has(lists[_i].list, &address), lists[_i].has);
}

/* The choice. */

static struct fl_proxy_rule rule(const char *proxy, const char *file)
{
    return (struct fl_proxy_rule){proxy, file, "'proxy'", "'proxy_credentials'"};
}

static const struct {
    const char *key, *https_proxy, *upper, *no_proxy, *address, *found; /* found NULL: direct */
} choices[] = {
    {"", NULL, NULL, NULL, "fl.example.org:1", NULL},
    {"", "http://p.example:1", NULL, NULL, "fl.example.org:1", "p.example:1"},
    {"", NULL, "http://q.example:1", NULL, "fl.example.org:1", "q.example:1"},
    {"", "http://p.example:1", "http://q.example:1", NULL, "fl.example.org:1", "p.example:1"},
    {"", "", "http://q.example:1", NULL, "fl.example.org:1", NULL},
    {"", "http://p.example:1", NULL, "example.org", "fl.example.org:1", NULL},
    {"", "http://p.example:1", NULL, NULL, "127.0.0.1:1", NULL},
    {"none", "http://p.example:1", NULL, NULL, "fl.example.org:1", NULL},
    {"k.example:1", "http://p.example:1", NULL, "*", "fl.example.org:1", "k.example:1"},
    {"k.example:1", NULL, NULL, NULL, "127.0.0.1:1", "k.example:1"},
    {"k.example:1", NULL, NULL, NULL, "unix:/run/x", NULL},
};

static void set_or_not(const char *name, const char *text)
{
    ck_assert_int_eq(text != NULL ? setenv(name, text, 1) : unsetenv(name), 0);
}

TEST_EACH(the_key_decides_before_the_environment, ARRAY_LEN(choices))
{
    struct fl_proxy proxy = {.key = NULL};
    struct fl_proxy_rule given = rule(choices[_i].key, "");
    bool direct = false;

    set_or_not("https_proxy", choices[_i].https_proxy);
    set_or_not("HTTPS_PROXY", choices[_i].upper);
    set_or_not("no_proxy", choices[_i].no_proxy);
    set_or_not("NO_PROXY", NULL);
    ck_assert_int_eq(fl_proxy_find(&given, choices[_i].address, &proxy, &direct, NULL), FL_OK);
    ck_assert_int_eq(direct, choices[_i].found == NULL);
    ck_assert_int_eq(fl_proxy_check(&given, NULL), FL_OK);
    if (choices[_i].found != NULL) {
        ck_assert_str_eq(proxy.address, choices[_i].found);
    }
}

TEST(without_a_rule_the_environment_is_ignored)
{
    struct fl_proxy proxy;
    bool direct = false;

    set_or_not("https_proxy", "http://p.example:1");
    ck_assert_int_eq(fl_proxy_find(NULL, "fl.example.org:1", &proxy, &direct, NULL), FL_OK);
    ck_assert(direct);
}

TEST(a_password_in_the_configuration_is_refused_and_not_shown)
{
    struct fl_proxy_rule given = rule("http://ann:s3cret@p.example:1", "");
    struct fl_err err = {0};

    ck_assert_int_eq(fl_proxy_check(&given, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "'proxy_credentials'"));
    ck_assert_ptr_null(strstr(err.msg, "s3cret"));
}

/* The file. */

static const struct {
    const char *text, *user; /* user NULL: refused */
} files[] = {
    {"ann:s3cret\n", "ann:s3cret"},
    {"ann:s3cret", "ann:s3cret"},
    {"ann:s3:cret\r\n", "ann:s3:cret"},
    {"ann:\n", "ann:"},
    {"", NULL},
    {"ann\n", NULL},
    {"ann:s3cret\nbob:x\n", NULL},
    {"ann:s3\tcret\n", NULL},
};

static void file_with(char *path, size_t size, const char *text, mode_t mode)
{
    FILE *file;

    (void)snprintf(path, size, "/tmp/fl-proxy-%ld", (long)getpid());
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    (void)fclose(file);
    ck_assert_int_eq(chmod(path, mode), 0);
}

TEST_EACH(the_credentials_are_one_line_of_a_file, ARRAY_LEN(files))
{
    struct fl_proxy proxy = {.key = NULL};
    struct fl_proxy_rule given;
    struct fl_err err = {0};
    bool direct = true;
    char path[64];
    int rv;

    file_with(path, sizeof(path), files[_i].text, 0600);
    given = rule("p.example:1", path);
    rv = fl_proxy_find(&given, "fl.example.org:1", &proxy, &direct, &err);
    if (files[_i].user != NULL) {
        ck_assert_int_eq(rv, FL_OK);
        ck_assert_str_eq(proxy.user, files[_i].user);
    } else {
        ck_assert_int_eq(rv, FL_EINVAL);
        ck_assert_ptr_nonnull(strstr(err.msg, path));
        ck_assert_ptr_null(strstr(err.msg, "s3"));
    }
    (void)unlink(path);
}

TEST(a_file_that_others_can_read_or_that_is_missing_is_refused)
{
    struct fl_proxy_rule given;
    struct fl_err err = {0};
    char path[64];

    file_with(path, sizeof(path), "ann:s3cret\n", 0644);
    given = rule("p.example:1", path);
    ck_assert_int_eq(fl_proxy_check(&given, &err), FL_EPERM);
    ck_assert_ptr_nonnull(strstr(err.msg, "0644"));
    (void)unlink(path);
    ck_assert_int_eq(fl_proxy_check(&given, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, path));
    given = rule("p.example:1", "/tmp");
    ck_assert_int_eq(fl_proxy_check(&given, &err), FL_EINVAL);
}
