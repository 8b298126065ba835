/* The bearer token: its file, its comparison, and the addresses that need it. */

#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/http/http.h"
#include "libfl/http/token.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

static char token_folder[FOLDER_PATH];
static char token_path[FOLDER_PATH + 8];

static void token_setup(void)
{
    ck_assert(folder_make("token", token_folder));
    (void)snprintf(token_path, sizeof(token_path), "%s/token", token_folder);
}

static void token_tear_down(void)
{
    folder_remove(token_folder);
}

static int token_of(const char *content, struct fl_http_token *ret, struct fl_err *err)
{
    ck_assert_int_eq(fl_fs_replace(token_path, content, strlen(content), false, NULL), FL_OK);
    return fl_http_token_read(token_path, ret, err);
}

TEST_CASE("token", token_setup, token_tear_down);

TEST(the_first_line_of_the_file_is_the_token)
{
    struct fl_http_token token;

    ck_assert_int_eq(token_of("0123456789abcdef\nsecond line\n", &token, NULL), FL_OK);
    ck_assert_str_eq(token.text, "0123456789abcdef");
    ck_assert_int_eq(token_of("0123456789abcdef", &token, NULL), FL_OK);
}

TEST(a_file_that_has_no_token_is_named_with_what_is_expected)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "short\n",
                                      "0123456789 abcdef\n",
                                      "0123456789abcdef\r\n",
                                      "0123456789abcde\xc3\xa4\n"};
    struct fl_http_token token;
    struct fl_err err;
    size_t i;

    for (i = 0; i < ARRAY_LEN(bad); i++) {
        err = (struct fl_err){0};
        ck_assert_int_eq(token_of(bad[i], &token, &err), FL_ECONF);
        ck_assert_ptr_nonnull(strstr(err.msg, token_path));
        ck_assert_ptr_nonnull(strstr(err.msg, "expected 16 to 512"));
    }
    ck_assert_int_eq(fl_http_token_read("/nowhere/token", &token, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot read '/nowhere/token'"));
}

TEST(only_the_token_itself_is_accepted)
{
    struct fl_http_token token;

    ck_assert_int_eq(token_of("0123456789abcdef\n", &token, NULL), FL_OK);
    ck_assert(fl_http_token_shown(&token, "Bearer 0123456789abcdef"));
    ck_assert(fl_http_token_shown(&token, "bearer 0123456789abcdef"));
    ck_assert(!fl_http_token_shown(&token, NULL));
    ck_assert(!fl_http_token_shown(&token, "Basic 0123456789abcdef"));
    ck_assert(!fl_http_token_shown(&token, "Bearer "));
    ck_assert(!fl_http_token_shown(&token, "Bearer 0123456789abcde"));
    ck_assert(!fl_http_token_shown(&token, "Bearer 0123456789abcdeg"));
    ck_assert(!fl_http_token_shown(&token, "Bearer 0123456789abcdef0123456789abcdef"));
    token.text[0] = '\0';
    ck_assert(fl_http_token_shown(&token, NULL));
}

/* What was checked last, and the field that the error is about. */
static struct fl_http_conf checked_conf;
static const void *about;

static int checked(const char *address, const char *file, struct fl_err *err)
{
    static const char *list[2];

    list[0] = address;
    checked_conf = (struct fl_http_conf){.listen = {.list = list, .n = 1}, .token_file = file};
    *err = (struct fl_err){0};
    return fl_http_conf_check(&checked_conf, &about, err);
}

TEST(an_address_that_is_not_on_loopback_needs_a_token)
{
    struct fl_http_token token;
    struct fl_err err;

    ck_assert_int_eq(token_of("0123456789abcdef\n", &token, NULL), FL_OK);
    ck_assert_int_eq(checked("127.0.0.1:0", "", &err), FL_OK);
    ck_assert_int_eq(checked("[::1]:7880", "", &err), FL_OK);
    ck_assert_int_eq(checked("localhost:7880", "", &err), FL_OK);
    ck_assert_int_eq(checked("*:7880", "", &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "set http.token_file"));
    ck_assert_int_eq(checked("10.0.0.1:7880", "", &err), FL_ECONF);
    ck_assert_int_eq(checked("10.0.0.1:7880", token_path, &err), FL_OK);
    ck_assert_int_eq(checked("unix:/run/x", "", &err), FL_ECONF);
    ck_assert_ptr_eq(about, &checked_conf.listen);
    ck_assert_int_eq(checked("127.0.0.1", "", &err), FL_ECONF);
    ck_assert_int_eq(checked("127.0.0.1:0", "/nowhere", &err), FL_ECONF);
    ck_assert_ptr_eq(about, &checked_conf.token_file);
}
