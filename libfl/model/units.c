#include "libfl/model/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "{}" of one pattern; more than any name has parts that matter. */
#define MAX_CAPTURES 8

struct capture {
    size_t at, len; /* in the name */
};

/* Where a pattern and a name stand in a comparison that is going on. */
struct match {
    const char *glob, *name;
    struct capture captures[MAX_CAPTURES];
    size_t n_captures;
    /* From here on it was tried and failed: so a comparison takes no longer than both lengths. */
    bool failed[FL_PATTERN_MAX + 1][FL_NAME_MAX + 1];
};

static bool match_from(struct match *m, size_t g, size_t at);

/* "{}" at `g`: each length that one part of a name can have. */
static bool match_capture(struct match *m, size_t g, size_t at)
{
    size_t mine = m->n_captures;
    size_t len;

    if (mine == MAX_CAPTURES) {
        return false;
    }
    m->n_captures++;
    for (len = 1; m->name[at + len - 1] != '\0' && m->name[at + len - 1] != '.'; len++) {
        m->captures[mine] = (struct capture){at, len};
        if (match_from(m, g + 2, at + len)) {
            return true;
        }
    }
    m->n_captures = mine;
    return false;
}

/* The depth is that of the pattern's wildcards. */
static bool match_from(struct match *m, size_t g, size_t at)
{
    size_t from_g = g;
    size_t from_at = at;

    if (m->failed[g][at]) {
        return false;
    }
    while (m->glob[g] != '\0' && m->glob[g] != '*' && strncmp(m->glob + g, "{}", 2) != 0 &&
           m->glob[g] == m->name[at])
    {
        g++;
        at++;
    }
    if (m->glob[g] == '\0' && m->name[at] == '\0') {
        return true;
    }
    if (m->glob[g] == '*') {
        for (;; at++) {
            if (match_from(m, g + 1, at)) {
                return true;
            }
            if (m->name[at] == '\0') {
                break;
            }
        }
    } else if (strncmp(m->glob + g, "{}", 2) == 0 && match_capture(m, g, at)) {
        return true;
    }
    m->failed[from_g][from_at] = true;
    return false;
}

static bool match(struct match *m, const char *glob, const char *name)
{
    (void)memset(m, 0, sizeof(*m));
    m->glob = glob;
    m->name = name;
    return strlen(glob) <= FL_PATTERN_MAX && strlen(name) <= FL_NAME_MAX && match_from(m, 0, 0);
}

bool fl_pattern_matches(const char *glob, const char *name)
{
    struct match m;

    return match(&m, glob, name);
}

/* --- units of patterns --- */

/* A tensor and the unit that it is put into. */
struct place {
    size_t tensor, first;
    size_t pattern; /* the number of patterns: none, it is in a unit of before */
    char unit[FL_NAME_MAX];
};

/* The name of the unit for what `m` matched. */
static int name_unit(const struct match *m, const char *pattern, size_t name_len,
                     char out[FL_NAME_MAX])
{
    size_t end = name_len > 0 ? name_len : strcspn(pattern, "*");
    size_t capture = 0;
    size_t used = 0;
    size_t i;

    for (i = 0; i < end; i++) {
        const char *text = pattern + i;
        size_t len = 1;

        if (strncmp(text, "{}", 2) == 0) {
            if (capture == m->n_captures) {
                return FL_EINVAL;
            }
            text = m->name + m->captures[capture].at;
            len = m->captures[capture++].len;
            i++;
        }
        if (used + len >= FL_NAME_MAX) {
            return FL_EINVAL;
        }
        (void)memcpy(out + used, text, len);
        used += len;
    }
    while (name_len == 0 && used > 0 && strchr("._-", out[used - 1]) != NULL) {
        used--;
    }
    out[used] = '\0';
    return fl_name_valid(out) ? FL_OK : FL_EINVAL;
}

static int bad_name(const char *pattern, struct fl_err *err)
{
    return fl_err_set(err, FL_EINVAL,
                      "'%s' gives its units no name of 1 to %d of [A-Za-z0-9._-]: write "
                      "'NAME=%s', with as many {} in NAME at most",
                      pattern, FL_NAME_MAX - 1, pattern);
}

static int check_pattern(const char *pattern, struct fl_err *err)
{
    size_t captures = 0;
    const char *at;

    if (pattern[0] == '\0' || strlen(pattern) > FL_PATTERN_MAX) {
        return fl_err_set(err, FL_EINVAL, "expected a pattern of 1 to %d bytes, found '%.64s'",
                          FL_PATTERN_MAX, pattern);
    }
    at = strchr(pattern, '=');
    for (at = at != NULL ? at : pattern; (at = strstr(at, "{}")) != NULL; at += 2) {
        captures++;
    }
    return captures <= MAX_CAPTURES
               ? FL_OK
               : fl_err_set(err, FL_EINVAL, "'%s' has %zu {}, at most %d are possible", pattern,
                            captures, MAX_CAPTURES);
}

/* Everything that is left and that the pattern matches. */
static int take(const struct fl_layout *from, const char *const *patterns, size_t which, size_t n,
                struct place *places, struct fl_err *err)
{
    const char *pattern = patterns[which];
    const char *equals = strchr(pattern, '=');
    size_t name_len = equals != NULL ? (size_t)(equals - pattern) : 0;
    struct match m;
    size_t matched = 0;
    size_t taken = 0;
    size_t i;
    int rv = check_pattern(pattern, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; rv == FL_OK && i < fl_layout_tensors(from); i++) {
        if (!match(&m, equals != NULL ? equals + 1 : pattern, fl_layout_tensor(from, i)->name)) {
            continue;
        }
        matched++;
        if (places[i].pattern == n) {
            places[i].pattern = which;
            rv = name_unit(&m, pattern, name_len, places[i].unit);
            taken++;
        }
    }
    if (rv != FL_OK) {
        return bad_name(pattern, err);
    }
    if (taken == 0) {
        return fl_err_set(err, FL_EINVAL,
                          matched == 0 ? "'%s' matches none of the %zu tensors, of which the first "
                                         "is '%s'"
                                       : "all that '%s' matches of the %zu tensors is taken by "
                                         "patterns before it, '%s' the first of all",
                          pattern, fl_layout_tensors(from), fl_layout_tensor(from, 0)->name);
    }
    return FL_OK;
}

static int by_unit(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    int order = strcmp(x->unit, y->unit);

    return order != 0 ? order : x->tensor < y->tensor ? -1 : 1;
}

static int by_first(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;

    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    return x->tensor < y->tensor ? -1 : 1;
}

/* Those of one unit together. A name that two patterns make, or a pattern and the rest: neither. */
static int group(struct place *places, size_t count, size_t n, size_t *ret_bad, struct fl_err *err)
{
    size_t i;

    qsort(places, count, sizeof(*places), by_unit);
    for (i = 0; i < count; i++) {
        bool same = i > 0 && strcmp(places[i].unit, places[i - 1].unit) == 0;

        if (same && places[i].pattern != places[i - 1].pattern) {
            size_t a = places[i].pattern;
            size_t b = places[i - 1].pattern;

            *ret_bad = a == n ? b : b == n || a > b ? a : b;
            return fl_err_set(err, FL_EINVAL,
                              a == n || b == n
                                  ? "unit '%s' has the name of one that other tensors are left in: "
                                    "give it another, NAME=PATTERN"
                                  : "unit '%s' is made by a pattern before it too: give it another "
                                    "name, NAME=PATTERN",
                              places[i].unit);
        }
        places[i].first = same ? places[i - 1].first : places[i].tensor;
    }
    qsort(places, count, sizeof(*places), by_first);
    return FL_OK;
}

static int build(const struct fl_layout *from, const struct place *places, struct fl_layout **ret,
                 struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    int rv = fl_layout_create(&layout);
    size_t i;

    for (i = 0; rv == FL_OK && i < fl_layout_tensors(from); i++) {
        rv = fl_layout_add_like(layout, places[i].unit, fl_layout_tensor(from, places[i].tensor),
                                err);
    }
    rv = rv == FL_OK ? fl_layout_finish(layout, err) : rv;
    if (rv != FL_OK) {
        fl_layout_free(layout);
        return rv;
    }
    *ret = layout;
    return FL_OK;
}

int fl_layout_regroup(const struct fl_layout *from, const char *const *patterns, size_t n,
                      struct fl_layout **ret, size_t *ret_bad, struct fl_err *err)
{
    size_t count = fl_layout_tensors(from);
    struct place *places = NULL;
    size_t i;
    int rv = FL_OK;

    *ret_bad = n;
    if (n > FL_UNITS_MAX_PATTERNS) {
        return fl_err_set(err, FL_ELIMIT, "%zu patterns, at most %d are possible", n,
                          FL_UNITS_MAX_PATTERNS);
    }
    places = calloc(count, sizeof(*places));
    if (places == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < count; i++) {
        const char *unit = fl_layout_unit(from, fl_layout_tensor(from, i)->unit)->name;

        places[i] = (struct place){.tensor = i, .pattern = n};
        (void)memcpy(places[i].unit, unit, strlen(unit) + 1);
    }
    for (i = 0; rv == FL_OK && i < n; i++) {
        *ret_bad = i;
        rv = take(from, patterns, i, n, places, err);
    }
    if (rv == FL_OK) {
        *ret_bad = n;
        rv = group(places, count, n, ret_bad, err);
    }
    rv = rv == FL_OK ? build(from, places, ret, err) : rv;
    free(places);
    return rv;
}

bool fl_layout_same_tensors(const struct fl_layout *a, const struct fl_layout *b)
{
    size_t i;

    for (i = 0; i < fl_layout_tensors(a); i++) {
        const struct fl_tensor *x = fl_layout_tensor(a, i);
        const struct fl_tensor *y = fl_layout_find(b, x->name);

        if (y == NULL || x->buffer != y->buffer || x->n_dims != y->n_dims ||
            memcmp(x->dims, y->dims, x->n_dims * sizeof(x->dims[0])) != 0)
        {
            return false;
        }
    }
    return fl_layout_tensors(a) == fl_layout_tensors(b);
}

int fl_layout_table(const struct fl_layout *layout, struct fl_buf *out)
{
    bool local = fl_layout_local(layout) > 0;
    size_t width = sizeof("unit") - 1;
    size_t l;
    int rv;

    for (l = 0; l < fl_layout_units(layout); l++) {
        size_t len = strlen(fl_layout_unit(layout, l)->name);

        width = len > width ? len : width;
    }
    rv = fl_buf_printf(out, "%-*s  tensors  parameters%s\n", (int)width, "unit",
                       local ? "  on clients" : "");
    for (l = 0; rv == FL_OK && l < fl_layout_units(layout); l++) {
        const struct fl_unit *u = fl_layout_unit(layout, l);

        rv = fl_buf_printf(out, "%-*s  %7zu  %10zu", (int)width, u->name, u->n_tensors, u->count);
        if (rv == FL_OK) {
            rv = local ? fl_buf_printf(out, "  %10zu\n", u->n_local) : fl_buf_add(out, "\n", 1);
        }
    }
    return rv;
}
