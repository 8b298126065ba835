#include "libfl/conf/differ.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct list {
    const char *const *except;
    char *out;
    size_t size;
    size_t n;   /* keys */
    size_t len; /* of `out` */
};

static bool same_node(const struct fl_conf_node *a, const struct fl_conf_node *b)
{
    size_t i;

    if (a == NULL || b == NULL) {
        return a == b;
    }
    if (fl_conf_kind(a) != fl_conf_kind(b) || fl_conf_size(a) != fl_conf_size(b)) {
        return false;
    }
    if (fl_conf_kind(a) == FL_CONF_SCALAR) {
        return strcmp(fl_conf_text(a), fl_conf_text(b)) == 0;
    }
    for (i = 0; i < fl_conf_size(a); i++) {
        const struct fl_conf_node *other =
            fl_conf_kind(a) == FL_CONF_MAP ? fl_conf_get(b, fl_conf_key(a, i)) : fl_conf_at(b, i);

        if (!same_node(fl_conf_at(a, i), other)) {
            return false;
        }
    }
    return true;
}

static void compare_maps(struct list *list, const char *section, const struct fl_conf_node *before,
                         const struct fl_conf_node *now);

static void compare_entry(struct list *list, const char *section, const char *key,
                          const struct fl_conf_node *before, const struct fl_conf_node *now)
{
    const struct fl_conf_node *either = now != NULL ? now : before;

    if (same_node(before, now)) {
        return;
    }
    if (section[0] == '\0' && fl_conf_kind(either) == FL_CONF_MAP &&
        (before == NULL || now == NULL || fl_conf_kind(before) == fl_conf_kind(now)))
    {
        compare_maps(list, key, before, now);
    } else {
        char text[512];
        const char *const *x;
        int n;

        (void)snprintf(text, sizeof(text), "%s%s%s", section, section[0] != '\0' ? "." : "", key);
        for (x = list->except; *x != NULL; x++) {
            if (strcmp(*x, text) == 0 || strcmp(*x, section) == 0) {
                return;
            }
        }
        n = snprintf(list->out + list->len, list->size - list->len, "%s%s", list->n > 0 ? ", " : "",
                     text);
        list->n++;
        list->len += (size_t)n;
        if (list->len >= list->size)
        { /* The text already ends in "...", so nothing more is appended. */
            (void)memcpy(list->out + list->size - 4, "...", 4);
            list->len = list->size - 1;
        }
    }
}

/* A mapping that is not given (NULL) has no keys. */
static void compare_maps(struct list *list, const char *section, const struct fl_conf_node *before,
                         const struct fl_conf_node *now)
{
    size_t i;

    for (i = 0; now != NULL && i < fl_conf_size(now); i++) {
        const char *key = fl_conf_key(now, i);

        compare_entry(list, section, key, fl_conf_get(before, key), fl_conf_at(now, i));
    }
    for (i = 0; before != NULL && i < fl_conf_size(before); i++) {
        const char *key = fl_conf_key(before, i);

        if (fl_conf_get(now, key) == NULL) {
            compare_entry(list, section, key, fl_conf_at(before, i), NULL);
        }
    }
}

size_t fl_conf_differ(const struct fl_conf_node *before, const struct fl_conf_node *now,
                      const char *const *except, char *out, size_t size)
{
    struct list list = {.except = except, .out = out, .size = size};

    out[0] = '\0';
    compare_maps(&list, "", before, now);
    return list.n;
}
