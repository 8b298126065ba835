#include "tools/flctl/bulk_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"

static bool bulk_is(const char *text, const char *const *list)
{
    while (*list != NULL && strcmp(*list, text) != 0) {
        list++;
    }
    return *list != NULL;
}

/* A certificate that the verb would change. */
static bool bulk_certificate_meant(enum fl_verb verb, const struct fl_bulk_client *c)
{
    static const char *const usable[] = {"valid", "lapsed", NULL};
    static const char *const disabled[] = {"disabled", NULL};

    if (strcmp(c->role, "client") != 0) {
        return false;
    }
    switch (verb) {
    case FL_VERB_ENABLE:
        return bulk_is(c->state, disabled);
    case FL_VERB_DISABLE:
        return bulk_is(c->state, usable);
    default: /* Revoking and evicting end a disabled one too. */
        return bulk_is(c->state, usable) || bulk_is(c->state, disabled);
    }
}

static bool bulk_client_meant(enum fl_verb verb, const struct fl_bulk_client *c)
{
    if (verb == FL_VERB_CLIENTS_RELEASE) {
        return strcmp(c->state, "quarantined") == 0;
    }
    /* Of a client that is gone only its last error is known, which can be forgotten. */
    return verb == FL_VERB_CLIENTS_FORGET || strcmp(c->state, "gone") != 0;
}

bool fl_bulk_chosen(const struct fl_bulk_choice *choice, enum fl_verb verb,
                    const struct fl_bulk_client *c)
{
    return fl_name_matches(choice->pattern, c->name) &&
           fl_labels_match(choice->labels, choice->n_labels, c->labels, c->n_labels) &&
           (c->role != NULL ? bulk_certificate_meant(verb, c) : bulk_client_meant(verb, c));
}

static int bulk_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t fl_bulk_sort(const char **names, size_t n)
{
    size_t left = 0;
    size_t i;

    if (n == 0) {
        return 0;
    }
    qsort(names, n, sizeof(names[0]), bulk_compare);
    for (i = 0; i < n; i++) {
        if (left == 0 || strcmp(names[left - 1], names[i]) != 0) {
            names[left++] = names[i];
        }
    }
    return left;
}

const char *fl_bulk_text(const char *const *names, size_t n, size_t shown, char *out, size_t size)
{
    size_t most = n < shown ? n : shown;
    size_t used = 0;
    size_t i;

    out[0] = '\0';
    for (i = 0; i < most && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    if (n > most && used < size) {
        (void)snprintf(out + used, size - used, " and %zu more", n - most);
    }
    return out;
}

int fl_bulk_label(const char *text, struct fl_pair *ret, struct fl_err *err)
{
    const char *equals = strchr(text, '=');
    struct fl_pair pair;

    if (equals == NULL || equals == text) {
        return fl_err_set(err, FL_EINVAL, "expected KEY=VALUE such as site=lab-7, found '%s'",
                          text);
    }
    pair.key = fl_str_dup(text);
    pair.value = fl_str_dup(equals + 1);
    if (pair.key == NULL || pair.value == NULL) {
        free(pair.key);
        free(pair.value);
        return fl_err_set(err, FL_ENOMEM, "out of memory");
    }
    pair.key[equals - text] = '\0';
    *ret = pair;
    return FL_OK;
}
