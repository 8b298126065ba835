#include <stdio.h>
#include <string.h>

#include "libfl/base/csv_split.h"
#include "tests/lib/suites.h"

static char seen[1024];

static void note(const char *kind, const struct fl_csv *csv, const char *text)
{
    size_t used = strlen(seen);

    (void)snprintf(seen + used, sizeof(seen) - used, "%s%d.%zu[%.20s]", kind, (int)csv->line,
                   csv->col, text);
}

static int on_field(void *ctx, char *text, size_t len)
{
    note(len > FL_CSV_TEXT ? "long" : "", ctx, text);
    return FL_OK;
}

static int on_row(void *ctx)
{
    note("row", ctx, "");
    return FL_OK;
}

static int on_comment(void *ctx, char *text, size_t len)
{
    note(len > FL_CSV_TEXT ? "longcomment" : "comment", ctx, text);
    return FL_OK;
}

/* Splits `text` in pieces of `piece` bytes; a mark is only at the beginning of the first. */
static void split(const char *text, size_t piece, bool comments)
{
    struct fl_csv csv = {.field = on_field,
                         .row = on_row,
                         .comment = comments ? on_comment : NULL,
                         .ctx = &csv,
                         .line = 1};
    size_t len = strlen(text);
    size_t at;

    seen[0] = '\0';
    for (at = 0; at < len; at += piece) {
        ck_assert_int_eq(fl_csv_feed(&csv, text + at, len - at < piece ? len - at : piece), FL_OK);
    }
    ck_assert_int_eq(fl_csv_end(&csv), FL_OK);
}

TEST(pieces_of_any_size_give_the_same_fields_and_rows)
{
    const char *text = "\xef\xbb\xbf  a , b\r\n\n \t\n1,,2 2\n # x, y\n,\n3";
    size_t piece;

    for (piece = 3; piece < 40; piece++) {
        split(text, piece, true);
        ck_assert_str_eq(seen, "1.0[a]1.1[b]row1.2[]4.0[1]4.1[]4.2[2 2]row4.3[]comment5.0[# x, y]"
                               "6.0[]6.1[]row6.2[]7.0[3]row7.1[]");
    }
}

TEST(a_line_with_a_hash_is_a_row_where_there_are_no_comments)
{
    split("#1,2\n3#,4\n", 1, false);
    ck_assert_str_eq(seen, "1.0[#1]1.1[2]row1.2[]2.0[3#]2.1[4]row2.2[]");
}

TEST(a_field_that_is_too_long_is_reported_with_its_beginning)
{
    static char text[2 * FL_CSV_TEXT];

    (void)memset(text, 'x', FL_CSV_TEXT);
    split(text, 1000, false);
    ck_assert_str_eq(seen, "1.0[xxxxxxxxxxxxxxxxxxxx]row1.1[]");
    text[FL_CSV_TEXT] = 'x';
    (void)memcpy(text + FL_CSV_TEXT + 1, ",2\n", 4);
    split(text, 1000, false);
    ck_assert_str_eq(seen, "long1.0[xxxxxxxxxxxxxxxxxxxx]1.1[2]row1.2[]");
    text[0] = '#';
    split(text, 1000, true);
    ck_assert_str_eq(seen, "longcomment1.0[#xxxxxxxxxxxxxxxxxxx]");
}

static int refuse_field(void *ctx, char *text, size_t len)
{
    (void)ctx;
    (void)len;
    return strcmp(text, "bad") == 0 ? FL_EFORMAT : FL_OK;
}

TEST(an_error_of_a_field_ends_the_reading_there)
{
    struct fl_csv csv = {.field = refuse_field, .row = on_row, .ctx = &csv, .line = 1};

    seen[0] = '\0';
    ck_assert_int_eq(fl_csv_feed(&csv, "1,2\n3,bad,4\n5\n", 14), FL_EFORMAT);
    ck_assert_str_eq(seen, "row1.2[]");
    ck_assert_uint_eq(csv.line, 2);
}
