/*
 * Command line parsing and --help from a table of options; prints usage errors to stderr. On the
 * main thread of a program. Does not interpret values.
 */

#include "libfl/base/args.h"

#include <stdarg.h>
#include <string.h>

#include "libfl/base/str.h"

/* Most options of a program. */
#define ROWS_MAX 64
/* Columns of a help line; most bytes of an option with its value; most columns of it before the
 * description column. The description of a longer option follows it directly. */
#define HELP_COLUMNS 96
#define LEFT_MAX     64
#define LEFT_COLUMNS 24

int fl_args_wrong(const struct fl_args *args, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "%s: %s\ntry %s --help\n", args->program, fl_str_clean(text),
                  args->program);
    return FL_ARGS_WRONG;
}

static int args_unknown_option(const struct fl_args *args, const char *word)
{
    const char *names[ROWS_MAX];
    const char *near;
    size_t n;

    for (n = 0; n < ROWS_MAX && args->rows[n].name != NULL; n++) {
        names[n] = args->rows[n].name;
    }
    near = fl_str_nearest(word + strspn(word, "-"), names, n);
    return fl_args_wrong(args, "unknown option '%s'%s%s%s", word,
                         near != NULL ? ", did you mean '--" : "", near != NULL ? near : "",
                         near != NULL ? "'?" : "");
}

/* Store the value in the field of its row; 0: stored, otherwise the id of the option or
 * FL_ARGS_WRONG. */
static int store_option(struct fl_args *args, const struct fl_arg *row, const char *value)
{
    args->row = row;
    args->value = value;
    if (row->id != 0) {
        return row->id;
    }
    if (row->value == NULL) {
        *row->flag = true;
    } else if (*row->text != NULL) {
        return fl_args_wrong(args, "--%s is given twice", row->name);
    } else {
        *row->text = value;
    }
    return 0;
}

/* Take the next word as the value of an option that needs one. */
static int option_with_next_word(struct fl_args *args, const struct fl_arg *row)
{
    if (row->value != NULL && args->at >= args->argc) {
        return fl_args_wrong(args, "--%s needs a value (%s)", row->name, row->value);
    }
    return store_option(args, row, row->value != NULL ? args->argv[args->at++] : NULL);
}

static int long_option(struct fl_args *args, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const struct fl_arg *row = args->rows;

    while (row->name != NULL &&
           (strlen(row->name) + 2 != len || memcmp(row->name, word + 2, len - 2) != 0))
    {
        row++;
    }
    if (row->name == NULL) {
        char name[128];

        (void)snprintf(name, sizeof(name), "%.*s", (int)(len < 120 ? len : 120), word);
        return args_unknown_option(args, name);
    }
    if (equals == NULL) {
        return option_with_next_word(args, row);
    }
    return row->value != NULL ? store_option(args, row, equals + 1)
                              : fl_args_wrong(args, "--%s takes no value", row->name);
}

/* Read the option of the first letter in args->letters. */
static int read_letter_option(struct fl_args *args)
{
    const struct fl_arg *row = args->rows;
    char word[3] = {'-', *args->letters++, '\0'};
    const char *rest = args->letters;

    while (row->name != NULL && row->letter != word[1]) {
        row++;
    }
    if (*rest == '\0' || (row->name != NULL && row->value != NULL)) {
        args->letters = NULL;
    }
    if (row->name == NULL) {
        return args_unknown_option(args, word);
    }
    return row->value != NULL && *rest != '\0' ? store_option(args, row, rest)
                                               : option_with_next_word(args, row);
}

int fl_args_next(struct fl_args *args)
{
    int rv = 0;

    args->at = args->at > 0 ? args->at : 1;
    while (rv == 0) {
        char *word;

        if (args->letters != NULL) {
            rv = read_letter_option(args);
            continue;
        }
        if (args->at >= args->argc) {
            return FL_ARGS_END;
        }
        word = args->argv[args->at++];
        if (args->only_operands || word[0] != '-' || word[1] == '\0') {
            args->argv[1 + args->n_operands++] = word;
        } else if (strcmp(word, "--") == 0) {
            args->only_operands = true;
        } else if (word[1] == '-') {
            rv = long_option(args, word);
        } else {
            args->letters = word + 1;
        }
    }
    return rv;
}

/* --- help --- */

static size_t text_columns(const char *text, size_t len)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        n += ((unsigned char)text[i] & 0xc0) != 0x80 ? 1 : 0;
    }
    return n;
}

/* "  -s, --socket PATH" */
static size_t left_of(const struct fl_arg *row, bool letters, char out[LEFT_MAX])
{
    char short_one[8] = "";

    if (letters) {
        (void)snprintf(short_one, sizeof(short_one), row->letter != '\0' ? "-%c, " : "    ",
                       row->letter);
    }
    (void)snprintf(out, LEFT_MAX, "  %s--%s%s%s", short_one, row->name,
                   row->value != NULL ? " " : "", row->value != NULL ? row->value : "");
    return text_columns(out, strlen(out));
}

/* Print `text` from column `at`, wrapped, with further lines indented to `indent`. */
static void put_words(FILE *out, const char *text, size_t at, size_t indent)
{
    bool first = true;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        size_t width = text_columns(text, len);

        if (!first && at + 1 + width > HELP_COLUMNS) {
            (void)fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            (void)fputc(' ', out);
            at++;
        }
        (void)fwrite(text, 1, len, out);
        at += width;
        first = false;
        text += len + strspn(text + len, " ");
    }
    (void)fputc('\n', out);
}

void fl_args_help(const struct fl_arg *rows, FILE *out)
{
    const struct fl_arg *row;
    char left[LEFT_MAX];
    bool letters = false;
    size_t widest = 0;

    for (row = rows; row->name != NULL; row++) {
        letters = letters || row->letter != '\0';
    }
    for (row = rows; row->name != NULL; row++) {
        size_t width = left_of(row, letters, left);

        widest = width > widest && width <= LEFT_COLUMNS ? width : widest;
    }
    for (row = rows; row->name != NULL; row++) {
        size_t width = left_of(row, letters, left);
        size_t pad = width < widest ? widest - width + 2 : 2;

        (void)fprintf(out, "%s%*s", left, (int)pad, "");
        put_words(out, row->help, width + pad, widest + 2);
    }
}
