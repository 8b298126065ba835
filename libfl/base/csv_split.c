#include "libfl/base/csv_split.h"

#include <ctype.h>
#include <string.h>

/* Passes on what was collected, without the blanks around it. */
static int csv_pass(struct fl_csv *csv, fl_csv_text_cb *cb)
{
    char *s = csv->text;
    size_t len = csv->len;

    csv->len = 0;
    if (len > FL_CSV_TEXT) {
        s[FL_CSV_TEXT] = '\0';
        return cb(csv->ctx, s, len);
    }
    while (len > 0 && isspace((unsigned char)s[len - 1])) {
        len--;
    }
    while (len > 0 && isspace((unsigned char)*s)) {
        s++;
        len--;
    }
    s[len] = '\0';
    return cb(csv->ctx, s, len);
}

static int csv_end_field(struct fl_csv *csv)
{
    int rv = csv_pass(csv, csv->field);

    csv->col++;
    return rv;
}

/* Has this line nothing but blanks so far? */
static bool csv_is_blank(const struct fl_csv *csv)
{
    size_t i;

    for (i = 0; i < csv->len && i < FL_CSV_TEXT && isspace((unsigned char)csv->text[i]); i++) {
    }
    return csv->col == 0 && i == csv->len;
}

static int csv_end_line(struct fl_csv *csv)
{
    int rv = FL_OK;

    if (csv->in_comment) {
        rv = csv_pass(csv, csv->comment);
    } else if (!csv_is_blank(csv)) {
        rv = csv_end_field(csv);
        if (rv != FL_OK) {
            goto done;
        }
        rv = csv->row(csv->ctx);
    }
done:
    csv->line++;
    csv->col = 0;
    csv->len = 0;
    csv->in_comment = false;
    return rv;
}

static bool csv_is_special(const struct fl_csv *csv, char c)
{
    if (csv->in_quotes) {
        return c == '"' || c == '\n';
    }
    return c == ',' || c == '\n' || c == '#' || (c == '"' && csv->quotes);
}

static void csv_collect(struct fl_csv *csv, const char *text, size_t n)
{
    size_t room = csv->len < FL_CSV_TEXT ? FL_CSV_TEXT - csv->len : 0;

    (void)memcpy(csv->text + csv->len, text, n < room ? n : room);
    csv->len = n <= room && csv->len <= FL_CSV_TEXT ? csv->len + n : FL_CSV_TEXT + 1;
}

/* A quote opens a field that has none before it, closes it, or is one after another. */
static void csv_on_quote(struct fl_csv *csv)
{
    size_t i;

    if (csv->in_quotes) {
        csv->in_quotes = false;
        csv->after_quote = true;
        return;
    }
    if (csv->after_quote) {
        csv->in_quotes = true;
        csv_collect(csv, "\"", 1);
        return;
    }
    for (i = 0; i < csv->len && i < FL_CSV_TEXT && isspace((unsigned char)csv->text[i]); i++) {
    }
    if (i < csv->len) {
        csv_collect(csv, "\"", 1);
        return;
    }
    csv->len = 0;
    csv->in_quotes = true;
    csv->quote_line = csv->line;
}

/* A character that is not part of a run of plain ones. */
static int csv_on_special(struct fl_csv *csv, char c)
{
    if (c == '"') {
        csv_on_quote(csv);
        return FL_OK;
    }
    csv->after_quote = false;
    if (csv->in_quotes) { /* a line end */
        csv->line++;
        csv_collect(csv, &c, 1);
        return FL_OK;
    }
    if (c == '\n') {
        return csv_end_line(csv);
    }
    if (c == ',' && !csv->in_comment) {
        return csv_end_field(csv);
    }
    csv->in_comment = csv->in_comment || (c == '#' && csv->comment != NULL && csv_is_blank(csv));
    csv_collect(csv, &c, 1);
    return FL_OK;
}

int fl_csv_feed(struct fl_csv *csv, const char *text, size_t len)
{
    size_t i = !csv->begun && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    int rv;

    csv->begun = true;
    while (i < len) {
        size_t from = i;

        while (i < len && !csv_is_special(csv, text[i])) {
            i++;
        }
        csv_collect(csv, text + from, i - from);
        csv->after_quote = csv->after_quote && i == from;
        if (i == len) {
            break;
        }
        rv = csv_on_special(csv, text[i]);
        if (rv != FL_OK) {
            return rv;
        }
        i++;
    }
    return FL_OK;
}

int fl_csv_end(struct fl_csv *csv)
{
    return csv_end_line(csv);
}
