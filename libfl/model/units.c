/*
 * Regroups the tensors of a layout into units by name patterns (units.h), matches patterns, and
 * prints the table of units. Pure functions on the caller's thread.
 */
#include "libfl/model/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limit of "{}" in one pattern. */
#define MAX_CAPTURES 8

struct capture {
    size_t at, len; /* in the name */
};

/* State of a match of a name against a pattern. */
struct pattern_match {
    const char *glob, *name;
    struct capture captures[MAX_CAPTURES];
    size_t n_captures;
    /*
     * Positions from which the match failed: each is tried once, so a match takes at most the
     * product of both lengths.
     */
    bool failed[FL_PATTERN_MAX + 1][FL_NAME_MAX + 1];
};

static bool pattern_match_from(struct pattern_match *m, size_t g, size_t at);

/* Match "{}" at `g`: try each length within one component of the name. */
static bool pattern_match_capture(struct pattern_match *m, size_t g, size_t at)
{
    size_t index = m->n_captures;
    size_t len;

    if (index == MAX_CAPTURES) {
        return false;
    }
    m->n_captures++;
    for (len = 1; m->name[at + len - 1] != '\0' && m->name[at + len - 1] != '.'; len++) {
        m->captures[index] = (struct capture){at, len};
        if (pattern_match_from(m, g + 2, at + len)) {
            return true;
        }
    }
    m->n_captures = index;
    return false;
}

/* The recursion depth is the number of the pattern's wildcards. */
static bool pattern_match_from(struct pattern_match *m, size_t g, size_t at)
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
            if (pattern_match_from(m, g + 1, at)) {
                return true;
            }
            if (m->name[at] == '\0') {
                break;
            }
        }
    } else if (strncmp(m->glob + g, "{}", 2) == 0 && pattern_match_capture(m, g, at)) {
        return true;
    }
    m->failed[from_g][from_at] = true;
    return false;
}

static bool pattern_match(struct pattern_match *m, const char *glob, const char *name)
{
    (void)memset(m, 0, sizeof(*m));
    m->glob = glob;
    m->name = name;
    return strlen(glob) <= FL_PATTERN_MAX && strlen(name) <= FL_NAME_MAX &&
           pattern_match_from(m, 0, 0);
}

bool fl_pattern_matches(const char *glob, const char *name)
{
    struct pattern_match m;

    return pattern_match(&m, glob, name);
}

/* --- units of patterns --- */

/* A tensor and its new unit. */
struct place {
    size_t tensor, first;
    size_t pattern; /* the number of patterns: no match, it keeps its unit */
    char unit[FL_NAME_MAX];
};

/* Make the name of the unit from the match `m`. */
static int regroup_name_unit(const struct pattern_match *m, const char *pattern, size_t name_len,
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

/* Assign the tensors that the pattern matches and that no earlier pattern took. */
static int regroup_take_pattern(const struct fl_layout *from, const char *const *patterns,
                                size_t which, size_t n, struct place *places, struct fl_err *err)
{
    const char *pattern = patterns[which];
    const char *equals = strchr(pattern, '=');
    size_t name_len = equals != NULL ? (size_t)(equals - pattern) : 0;
    struct pattern_match m;
    size_t matched = 0;
    size_t taken = 0;
    size_t i;
    size_t captures = 0;
    const char *at;
    int rv;

    if (pattern[0] == '\0' || strlen(pattern) > FL_PATTERN_MAX) {
        return fl_err_set(err, FL_EINVAL, "expected a pattern of 1 to %d bytes, found '%.64s'",
                          FL_PATTERN_MAX, pattern);
    }
    at = strchr(pattern, '=');
    for (at = at != NULL ? at : pattern; (at = strstr(at, "{}")) != NULL; at += 2) {
        captures++;
    }
    if (captures > MAX_CAPTURES) {
        return fl_err_set(err, FL_EINVAL, "'%s' has %zu {}, the limit is %d", pattern, captures,
                          MAX_CAPTURES);
    }
    for (i = 0; i < fl_layout_tensors(from); i++) {
        if (!pattern_match(&m, equals != NULL ? equals + 1 : pattern,
                           fl_layout_tensor(from, i)->name)) {
            continue;
        }
        matched++;
        if (places[i].pattern == n) {
            places[i].pattern = which;
            rv = regroup_name_unit(&m, pattern, name_len, places[i].unit);
            if (rv != FL_OK) {
                return fl_err_set(
                    err, FL_EINVAL,
                    "'%s' gives no valid unit name, expected 1 to %d of [A-Za-z0-9._-]: write "
                    "'NAME=%s', with at most as many {} in NAME",
                    pattern, FL_NAME_MAX - 1, pattern);
            }
            taken++;
        }
    }
    if (taken == 0) {
        return fl_err_set(err, FL_EINVAL,
                          matched == 0 ? "'%s' matches none of the %zu tensors; the first one is "
                                         "'%s'"
                                       : "all matches of '%s' among the %zu tensors belong to "
                                         "earlier patterns; the first tensor is '%s'",
                          pattern, fl_layout_tensors(from), fl_layout_tensor(from, 0)->name);
    }
    return FL_OK;
}

static int regroup_by_unit(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    int order = strcmp(x->unit, y->unit);

    return order != 0 ? order : x->tensor < y->tensor ? -1 : 1;
}

static int regroup_by_first(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;

    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    return x->tensor < y->tensor ? -1 : 1;
}

/*
 * Sort tensors of one unit together. A unit name that two patterns make, or a pattern and a
 * remaining unit, is refused.
 */
static int regroup_sort(struct place *places, size_t count, size_t n, size_t *ret_bad,
                        struct fl_err *err)
{
    size_t i;

    qsort(places, count, sizeof(*places), regroup_by_unit);
    for (i = 0; i < count; i++) {
        bool same = i > 0 && strcmp(places[i].unit, places[i - 1].unit) == 0;

        if (same && places[i].pattern != places[i - 1].pattern) {
            size_t a = places[i].pattern;
            size_t b = places[i - 1].pattern;

            *ret_bad = a == n ? b : b == n || a > b ? a : b;
            return fl_err_set(err, FL_EINVAL,
                              a == n || b == n
                                  ? "unit '%s' has the name of an existing unit with other "
                                    "tensors: choose another name, NAME=PATTERN"
                                  : "unit '%s' is also made by an earlier pattern: choose another "
                                    "name, NAME=PATTERN",
                              places[i].unit);
        }
        places[i].first = same ? places[i - 1].first : places[i].tensor;
    }
    qsort(places, count, sizeof(*places), regroup_by_first);
    return FL_OK;
}

static int regroup_build(const struct fl_layout *from, const struct place *places,
                         struct fl_layout **ret, struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    int rv = fl_layout_create(&layout);
    size_t i;

    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < fl_layout_tensors(from); i++) {
        rv = fl_layout_add_like(layout, places[i].unit, fl_layout_tensor(from, places[i].tensor),
                                err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl_layout_finish(layout, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = layout;
    return FL_OK;
fail:
    fl_layout_free(layout);
    return rv;
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
        return fl_err_set(err, FL_ELIMIT, "%zu patterns, the limit is %d", n,
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
    for (i = 0; i < n; i++) {
        *ret_bad = i;
        rv = regroup_take_pattern(from, patterns, i, n, places, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    *ret_bad = n;
    rv = regroup_sort(places, count, n, ret_bad, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = regroup_build(from, places, ret, err);
done:
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
    size_t width = sizeof("layer") - 1;
    size_t l;
    int rv;

    for (l = 0; l < fl_layout_units(layout); l++) {
        size_t len = strlen(fl_layout_unit(layout, l)->name);

        width = len > width ? len : width;
    }
    rv = fl_buf_printf(out, "%-*s  tensors  parameters%s\n", (int)width, "layer",
                       local ? "  on clients" : "");
    if (rv != FL_OK) {
        return rv;
    }
    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *u = fl_layout_unit(layout, l);

        rv = fl_buf_printf(out, "%-*s  %7zu  %10zu", (int)width, u->name, u->n_tensors, u->count);
        if (rv != FL_OK) {
            return rv;
        }
        rv = local ? fl_buf_printf(out, "  %10zu\n", u->n_local) : fl_buf_add(out, "\n", 1);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}
