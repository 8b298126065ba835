/*
 * Text helpers: copies, numbers, nearest names, name rules, UTF-8, truncation. Any thread; no
 * locale.
 */

#include "libfl/base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_STR_EDIT_MAX 64

int fl_str_copy(char *dst, size_t size, const char *src)
{
    size_t len = strlen(src);

    if (len >= size) {
        return FL_ELIMIT;
    }
    (void)memcpy(dst, src, len + 1);
    return FL_OK;
}

bool fl_str_ends_with(const char *text, const char *end)
{
    size_t a = strlen(text);
    size_t b = strlen(end);

    return a >= b && strcmp(text + a - b, end) == 0;
}

char *fl_str_dup(const char *src)
{
    size_t len = strlen(src) + 1;
    char *copy = malloc(len);

    if (copy != NULL) {
        (void)memcpy(copy, src, len);
    }
    return copy;
}

void fl_str_list_free(char **list)
{
    size_t i;

    for (i = 0; list != NULL && list[i] != NULL; i++) {
        free(list[i]);
    }
    free(list);
}

char **fl_str_list_dup(const char *const *list)
{
    size_t n = 0;
    char **copy;
    size_t i;

    while (list != NULL && list[n] != NULL) {
        n++;
    }
    copy = calloc(n + 1, sizeof(*copy));
    for (i = 0; copy != NULL && i < n; i++) {
        copy[i] = fl_str_dup(list[i]);
        if (copy[i] == NULL) {
            fl_str_list_free(copy);
            return NULL;
        }
    }
    return copy;
}

int fl_str_to_u64(const char *text, uint64_t *ret)
{
    char *end = NULL;
    unsigned long long value;

    if (!isdigit((unsigned char)text[0])) {
        return FL_EINVAL;
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return errno == ERANGE ? FL_ERANGE : FL_EINVAL;
    }
    *ret = value;
    return FL_OK;
}

int fl_str_to_i64(const char *text, int64_t *ret)
{
    char *end = NULL;
    long long value;

    if (!isdigit((unsigned char)text[0]) && text[0] != '-' && text[0] != '+') {
        return FL_EINVAL;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') {
        return errno == ERANGE ? FL_ERANGE : FL_EINVAL;
    }
    *ret = value;
    return FL_OK;
}

int fl_str_to_double(const char *text, double *ret)
{
    char *end = NULL;
    double value;

    if (text[0] == '\0' || isspace((unsigned char)text[0])) {
        return FL_EINVAL;
    }
    errno = 0;
    value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) {
        return FL_EINVAL;
    }
    *ret = value;
    return FL_OK;
}

/* Levenshtein distance with one row; longer words count as far away. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[FL_STR_EDIT_MAX + 1];
    size_t la = strlen(a);
    size_t lb = strlen(b);
    size_t i;
    size_t j;

    if (la > FL_STR_EDIT_MAX || lb > FL_STR_EDIT_MAX) {
        return SIZE_MAX;
    }
    for (j = 0; j <= lb; j++) {
        row[j] = j;
    }
    for (i = 1; i <= la; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (j = 1; j <= lb; j++) {
            size_t up = row[j];
            size_t best = diagonal + (a[i - 1] != b[j - 1]);

            best = up + 1 < best ? up + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = up;
        }
    }
    return row[lb];
}

const char *fl_str_nearest(const char *word, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2;
    size_t i;

    for (i = 0; i < n; i++) {
        size_t d = edit_distance(word, names[i]);

        if (d < best_distance) {
            best_distance = d;
            best = names[i];
        }
    }
    /* Otherwise a prefix: "cert" for "certificates". */
    for (i = 0; best == NULL && strlen(word) >= 3 && i < n; i++) {
        best = strncmp(names[i], word, strlen(word)) == 0 ? names[i] : NULL;
    }
    return best;
}

bool fl_name_allowed(const char *name)
{
    return name[0] != '-' && fl_name_valid(name);
}

bool fl_name_valid(const char *name)
{
    size_t i;

    if (name[0] == '\0' || name[0] == '.') {
        return false;
    }
    for (i = 0; name[i] != '\0'; i++) {
        unsigned char c = (unsigned char)name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (i + 1 >= FL_NAME_MAX || (!letter && c != '.' && c != '_' && c != '-')) {
            return false;
        }
    }
    return true;
}

const char *fl_str_bytes(char *out, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t i = 0;

    while (value >= 1000.0 && i + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1000.0;
        i++;
    }
    (void)snprintf(out, size, i == 0 ? "%.0f %s" : "%.1f %s", value, units[i]);
    return out;
}

size_t fl_str_utf8(const uint8_t *s, size_t len)
{
    uint8_t lead = s[0];
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    size_t n;
    size_t i;

    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) {
        return 0;
    }
    n = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead == 0xe0) {
        low = 0xa0; /* no overlong forms */
    } else if (lead == 0xed) {
        high = 0x9f; /* no surrogates */
    } else if (lead == 0xf0) {
        low = 0x90;
    } else if (lead == 0xf4) {
        high = 0x8f; /* up to U+10FFFF */
    }
    if (len < n || s[1] < low || s[1] > high) {
        return 0;
    }
    for (i = 2; i < n; i++) {
        if (s[i] < 0x80 || s[i] > 0xbf) {
            return 0;
        }
    }
    return n;
}

char *fl_str_clean(char *text)
{
    uint8_t *s = (uint8_t *)text;
    size_t left = text != NULL ? strlen(text) : 0;

    while (left > 0) {
        size_t n = fl_str_utf8(s, left);
        /* C0, DEL, and C1 (U+0080 to U+009F), terminal control codes too. */
        bool control = n == 1 ? s[0] < 0x20 || s[0] == 0x7f : n == 2 && s[0] == 0xc2 && s[1] < 0xa0;

        if (n == 0 || control) {
            n = n > 0 ? n : 1;
            (void)memset(s, '?', n);
        }
        s += n;
        left -= n;
    }
    return text;
}

static bool utf8_continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

char *fl_str_ends(char *out, size_t size, const char *text)
{
    static const char gap[] = " ... ";
    size_t len = text != NULL ? strlen(text) : 0;
    size_t head;
    const char *tail;

    FL_REQUIRE(size > sizeof(gap) + 2);
    if (len < size) {
        (void)snprintf(out, size, "%s", text != NULL ? text : "");
        return out;
    }
    head = (size - sizeof(gap)) / 3;
    tail = text + len - (size - sizeof(gap) - head);
    while (head > 0 && utf8_continues(text[head])) {
        head--;
    }
    while (utf8_continues(*tail)) {
        tail++;
    }
    (void)snprintf(out, size, "%.*s%s%s", (int)head, text, gap, tail);
    return out;
}
