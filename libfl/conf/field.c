/*
 * Values of option fields: memory of texts, lists and maps. Used while options are filled, by their
 * owner only. Does not parse text (optval.c).
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/conf/conf_impl.h"

bool fl__opt_is_list(enum fl_opt_type type)
{
    return type == FL_OPT_STRING_LIST || type == FL_OPT_INT_LIST || type == FL_OPT_MAP;
}

size_t fl__field_size(enum fl_opt_type type)
{
    static const size_t sizes[] = {
        [FL_OPT_BOOL] = sizeof(bool),
        [FL_OPT_INT] = sizeof(int64_t),
        [FL_OPT_FLOAT] = sizeof(double),
        [FL_OPT_BYTES] = sizeof(uint64_t),
        [FL_OPT_DURATION] = sizeof(uint64_t),
        [FL_OPT_RATE] = sizeof(uint64_t),
        [FL_OPT_STRING] = sizeof(const char *),
        [FL_OPT_ENUM] = sizeof(int),
        [FL_OPT_STRING_LIST] = sizeof(struct fl_opt_texts),
        [FL_OPT_INT_LIST] = sizeof(struct fl_opt_ints),
        [FL_OPT_MAP] = sizeof(struct fl_opt_map),
    };

    return sizes[type];
}

void fl__field_clear(const struct fl_opt_spec *spec, union fl__opt_field *field)
{
    size_t i;

    if (spec->type == FL_OPT_STRING) {
        free(field->text);
    } else if (fl__opt_is_list(spec->type)) {
        for (i = 0; i < field->items.n && spec->type != FL_OPT_INT_LIST; i++) {
            if (spec->type == FL_OPT_MAP) {
                free(field->items.list.pairs[i].key);
                free(field->items.list.pairs[i].value);
            } else {
                free(field->items.list.texts[i]);
            }
        }
        free(field->items.list.any);
    }
    *field = (union fl__opt_field){.items = {{NULL}, 0}};
}

int fl__field_put(const struct fl_opt_spec *spec, union fl__opt_field *field, const char *key,
                  const char *text, int64_t number)
{
    static const size_t sizes[] = {
        [FL_OPT_STRING_LIST] = sizeof(const char *),
        [FL_OPT_INT_LIST] = sizeof(int64_t),
        [FL_OPT_MAP] = sizeof(struct fl_pair),
    };
    void *list;

    /* Make room for one more item, and for the terminating NULL of a list of texts. */
    if (field->items.n >= FL__OPT_ITEMS_MAX) {
        return FL_ELIMIT;
    }
    list = realloc(field->items.list.any, (field->items.n + 2) * sizes[spec->type]);
    if (list == NULL) {
        return FL_ENOMEM;
    }
    field->items.list.any = list;
    if (spec->type == FL_OPT_MAP) {
        struct fl_pair *pairs = field->items.list.pairs;
        struct fl_pair pair = {fl_str_dup(key), fl_str_dup(text)};
        bool many = (spec->flags & (unsigned)FL_OPT_MANY) != 0;
        size_t i;

        /* Append the item, or replace the value of the same key. */
        if (pair.key == NULL || pair.value == NULL) {
            free(pair.key);
            free(pair.value);
            return FL_ENOMEM;
        }
        for (i = 0; i < field->items.n && (many || strcmp(pairs[i].key, key) != 0); i++) {
        }
        if (i < field->items.n) {
            free(pairs[i].key);
            free(pairs[i].value);
        } else {
            field->items.n++;
        }
        pairs[i] = pair;
        return FL_OK;
    }
    if (spec->type == FL_OPT_STRING_LIST) {
        char *copy = fl_str_dup(text);

        if (copy == NULL) {
            return FL_ENOMEM;
        }
        field->items.list.texts[field->items.n++] = copy;
        field->items.list.texts[field->items.n] = NULL;
        return FL_OK;
    }
    field->items.list.ints[field->items.n++] = number;
    return FL_OK;
}

int fl__field_copy(const struct fl_opt_spec *spec, const union fl__opt_field *from,
                   union fl__opt_field *to)
{
    *to = *from;
    if (spec->type == FL_OPT_STRING) {
        to->text = fl_str_dup(from->text);
        return to->text != NULL ? FL_OK : FL_ENOMEM;
    }
    if (fl__opt_is_list(spec->type)) {
        size_t i;
        int rv;

        *to = (union fl__opt_field){.items = {{NULL}, 0}};
        for (i = 0; i < from->items.n; i++) {
            switch (spec->type) {
            case FL_OPT_MAP:
                rv = fl__field_put(spec, to, from->items.list.pairs[i].key,
                                   from->items.list.pairs[i].value, 0);
                break;
            case FL_OPT_INT_LIST:
                rv = fl__field_put(spec, to, NULL, NULL, from->items.list.ints[i]);
                break;
            default:
                rv = fl__field_put(spec, to, NULL, from->items.list.texts[i], 0);
                break;
            }
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}
