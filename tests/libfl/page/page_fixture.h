#ifndef FL_TESTS_PAGE_FIXTURE_H
#define FL_TESTS_PAGE_FIXTURE_H

/* Markup that is well-formed, and a federation to show. */

#include <check.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/page/chart.h"
#include "libfl/page/page.h"
#include "tests/lib/suites.h"

/* A name and a text as an attacker would choose them. */
#define EVIL "\"><script>alert('1')</script>&amp;\x01\xff<b x=\""

/* The buffer as a string. */
static inline const char *page_text(struct fl_buf *buf)
{
    ck_assert_int_eq(fl_buf_add(buf, "", 1), FL_OK);
    buf->len--;
    return (const char *)buf->data;
}

static inline size_t page_count(const char *text, const char *word)
{
    size_t n = 0;

    while ((text = strstr(text, word)) != NULL) {
        text += strlen(word);
        n++;
    }
    return n;
}

/* Every tag is closed by its own, no attribute has a style or a handler, every id is unique. */
static inline void page_check(const char *text)
{
    static const char *const empty[] = {"meta", "input", "rect", "path", "circle"};
    char stack[64][16];
    size_t depth = 0;
    const char *p = text;
    const char *id;

    ck_assert_ptr_null(strstr(text, " style="));
    ck_assert_ptr_null(strstr(text, " onclick="));
    while ((p = strchr(p, '<')) != NULL) {
        char name[16] = "";
        size_t n = 0;
        bool closing = p[1] == '/';
        const char *end = strchr(p, '>');
        size_t i;

        ck_assert_ptr_nonnull(end);
        for (p += closing ? 2 : 1;
             n + 1 < sizeof(name) && (isalnum((unsigned char)*p) || *p == '!'); p++) {
            name[n++] = *p;
        }
        ck_assert_msg(n > 0, "a '<' that begins no tag: %.40s", p);
        p = end;
        if (name[0] == '!') {
            continue;
        }
        if (closing) {
            ck_assert_msg(depth > 0 && strcmp(stack[depth - 1], name) == 0, "</%s> in <%s>: %.60s",
                          name, depth > 0 ? stack[depth - 1] : "", p);
            depth--;
            continue;
        }
        for (i = 0; i < ARRAY_LEN(empty) && strcmp(empty[i], name) != 0; i++) {
        }
        if (i == ARRAY_LEN(empty)) {
            ck_assert_uint_lt(depth, ARRAY_LEN(stack));
            (void)memcpy(stack[depth++], name, sizeof(name));
        }
        if (strcmp(name, "script") == 0 || strcmp(name, "style") == 0) {
            p = strstr(p, "</");
            ck_assert_ptr_nonnull(p);
        }
    }
    ck_assert_uint_eq(depth, 0);
    for (id = strstr(text, " id=\""); id != NULL; id = strstr(id + 1, " id=\"")) {
        char word[128];

        (void)snprintf(word, sizeof(word), "%.*s", (int)(strcspn(id + 5, "\"") + 6), id);
        ck_assert_msg(page_count(text, word) == 1, "%s is there %zu times", word,
                      page_count(text, word));
    }
}

static inline int page_query_hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes text up to '&' or its end; cut when it is too long. Returns its end. */
static inline const char *page_query_value(const char *text, char *out, size_t size)
{
    size_t used = 0;

    while (*text != '\0' && *text != '&') {
        char c = *text == '+' ? ' ' : *text;

        if (c == '%' && page_query_hex(text[1]) >= 0 && page_query_hex(text[2]) >= 0) {
            c = (char)(page_query_hex(text[1]) * 16 + page_query_hex(text[2]));
            text += 2;
        }
        text++;
        if (used + 1 < size && c != '\0') {
            out[used++] = c;
        }
    }
    out[used] = '\0';
    return text;
}

/* The parameters of a query, as a server decodes them. */
static inline void page_query_read(const char *text, struct fl_page_query *ret)
{
    *ret = (struct fl_page_query){0};
    while (*text != '\0') {
        char key[16];
        char value[sizeof(ret->filter)] = "";
        size_t n = strcspn(text, "=&");

        (void)snprintf(key, sizeof(key), "%.*s", n < sizeof(key) ? (int)n : 0, text);
        text += n;
        if (*text == '=') {
            text = page_query_value(text + 1, value, sizeof(value));
        }
        fl_page_query_set(ret, key, value);
        text += *text == '&';
    }
}

#endif
