/*
 * Rules of `tls.names`: parsing, and matching of a certificate's names to a role and a name. Pure
 * functions, any thread. Reads no certificates (who.c does).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/pki/names.h"

#define FL_HOLE "{name}"
#define FL_AS   " as "

struct rule {
    enum fl_role role;
    enum fl_san_kind kind;
    bool hole;                        /* {name} is between head and tail */
    char fixed[FL_IDENTITY_NAME_MAX]; /* otherwise the fixed name */
    size_t head_len;
    size_t tail_len;
    char text[FL_RULE_TEXT_MAX]; /* head, then tail */
};

struct fl_rules {
    atomic_uint refs;
    size_t n;
    struct rule rules[];
};

static const char *const kinds[] = {"dns", "email", "uri", "cn"};

/* Cuts "word" and the separator off the beginning of `*rest`. */
static bool cut_word(const char **rest, char separator, char *out, size_t size)
{
    const char *end = strchr(*rest, separator);
    size_t len;

    if (end == NULL || (len = (size_t)(end - *rest)) >= size) {
        return false;
    }
    (void)memcpy(out, *rest, len);
    out[len] = '\0';
    *rest = end + 1;
    while (**rest == ' ') {
        (*rest)++;
    }
    return true;
}

static int rule_error(struct fl_err *err, const char *text, const char *why)
{
    char shown[160];

    (void)snprintf(shown, sizeof(shown), "%s", text);
    return fl_err_set(err, FL_ECONF,
                      "rule '%s': %s; write a rule as 'client dns:{name}.edge.example.org' or "
                      "'admin email:jane@example.org as jane'",
                      fl_str_clean(shown), why);
}

/* Parses the part after "kind:". */
static int read_pattern(struct rule *rule, const char *text, const char *pattern,
                        struct fl_err *err)
{
    const char *as = strstr(pattern, FL_AS);
    size_t len = as != NULL ? (size_t)(as - pattern) : strlen(pattern);
    const char *hole;

    if (len == 0 || len >= sizeof(rule->text)) {
        return rule_error(err, text, "nothing to compare with, or more than 511 characters of it");
    }
    (void)memcpy(rule->text, pattern, len);
    rule->text[len] = '\0';
    hole = strstr(rule->text, FL_HOLE);
    if (as != NULL && (hole != NULL || !fl_name_valid(as + strlen(FL_AS)) ||
                       fl_str_copy(rule->fixed, sizeof(rule->fixed), as + strlen(FL_AS)) != FL_OK))
    {
        return rule_error(err, text, "one valid name must follow 'as', and no {name} before it");
    }
    if (as == NULL && (hole == NULL || strstr(hole + 1, FL_HOLE) != NULL)) {
        return rule_error(err, text, "{name} must occur once, or 'as NAME' at the end");
    }
    rule->hole = hole != NULL;
    rule->head_len = hole != NULL ? (size_t)(hole - rule->text) : len;
    if (hole != NULL) {
        rule->tail_len = len - rule->head_len - strlen(FL_HOLE);
        (void)memmove(rule->text + rule->head_len, hole + strlen(FL_HOLE), rule->tail_len + 1);
    }
    return FL_OK;
}

static int read_rule(struct rule *rule, const char *text, struct fl_err *err)
{
    const char *rest = text;
    char word[16];
    size_t kind = 0;

    if (!cut_word(&rest, ' ', word, sizeof(word))) {
        return rule_error(err, text,
                          "'client' or 'admin' and a blank were expected at its beginning");
    }
    if (strcmp(word, "client") == 0) {
        rule->role = FL_ROLE_CLIENT;
    } else if (strcmp(word, "admin") == 0) {
        rule->role = FL_ROLE_ADMIN;
    } else {
        return rule_error(
            err, text,
            "the role must be client or admin (a server is identified by its host name)");
    }
    if (!cut_word(&rest, ':', word, sizeof(word))) {
        return rule_error(err, text, "dns:, email:, uri: or cn: was expected after the role");
    }
    while (kind < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kinds[kind], word) != 0) {
        kind++;
    }
    if (kind == sizeof(kinds) / sizeof(kinds[0])) {
        return rule_error(err, text, "dns:, email:, uri: or cn: was expected after the role");
    }
    rule->kind = (enum fl_san_kind)kind;
    return read_pattern(rule, text, rest, err);
}

int fl_rules_create(const char *const *texts, size_t n, struct fl_rules **ret, size_t *ret_bad,
                    struct fl_err *err)
{
    struct fl_rules *rules;
    size_t i;
    int rv;

    if (ret_bad != NULL) {
        *ret_bad = n < FL_RULES_MAX ? 0 : FL_RULES_MAX;
    }
    if (n > FL_RULES_MAX) {
        return fl_err_set(err, FL_ELIMIT, "too many rules: %zu, at most %d", n, FL_RULES_MAX);
    }
    rules = calloc(1, sizeof(*rules) + n * sizeof(rules->rules[0]));
    if (rules == NULL) {
        return FL_ENOMEM;
    }
    atomic_init(&rules->refs, 1);
    rules->n = n;
    for (i = 0; i < n; i++) {
        rv = read_rule(&rules->rules[i], texts[i], err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = rules;
    return FL_OK;
fail:
    if (ret_bad != NULL) {
        *ret_bad = i;
    }
    free(rules);
    return rv;
}

struct fl_rules *fl_rules_ref(struct fl_rules *rules)
{
    (void)atomic_fetch_add_explicit(&rules->refs, 1, memory_order_relaxed);
    return rules;
}

void fl_rules_unref(struct fl_rules *rules)
{
    if (rules != NULL && atomic_fetch_sub_explicit(&rules->refs, 1, memory_order_acq_rel) == 1) {
        free(rules);
    }
}

size_t fl_rules_len(const struct fl_rules *rules)
{
    return rules->n;
}

static char rule_lower_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The index from which case is ignored: for host names, and after the last @ of a mail address. */
static size_t fold_from(enum fl_san_kind kind, const char *text, size_t len)
{
    size_t at = len;

    if (kind == FL_SAN_DNS) {
        return 0;
    }
    while (kind == FL_SAN_EMAIL && at > 0) {
        if (text[--at] == '@') {
            return at;
        }
    }
    return len;
}

static bool rule_same_text(const char *text, size_t at, const char *want, size_t n, size_t fold)
{
    size_t i;

    for (i = 0; i < n; i++) {
        char a = text[at + i];
        char b = want[i];

        if (a != b && (at + i < fold || rule_lower_case(a) != rule_lower_case(b))) {
            return false;
        }
    }
    return true;
}

static bool rule_capture(enum fl_san_kind kind, const char *text, size_t len, char *name)
{
    size_t i;

    if (len >= FL_IDENTITY_NAME_MAX) {
        return false;
    }
    for (i = 0; i < len; i++) {
        name[i] = kind == FL_SAN_DNS ? rule_lower_case(text[i]) : text[i];
        if (kind == FL_SAN_DNS && text[i] == '.') {
            return false;
        }
    }
    name[len] = '\0';
    return strlen(name) == len && fl_name_valid(name);
}

bool fl_rules_fit(const struct fl_rules *rules, size_t i, enum fl_san_kind kind, const char *text,
                  size_t len, char *name, enum fl_role *ret_role)
{
    const struct rule *rule;
    size_t fold = fold_from(kind, text, len);

    FL_REQUIRE(i < rules->n);
    rule = &rules->rules[i];
    if (rule->kind != kind || len < rule->head_len + rule->tail_len ||
        (!rule->hole && len != rule->head_len) ||
        !rule_same_text(text, 0, rule->text, rule->head_len, fold) ||
        !rule_same_text(text, len - rule->tail_len, rule->text + rule->head_len, rule->tail_len,
                        fold))
    {
        return false;
    }
    *ret_role = rule->role;
    if (!rule->hole) {
        (void)memcpy(name, rule->fixed, sizeof(rule->fixed));
        return true;
    }
    return rule_capture(kind, text + rule->head_len, len - rule->head_len - rule->tail_len, name);
}
