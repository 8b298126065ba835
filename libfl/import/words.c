#include "libfl/import/words.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"

void fl_words_done(struct fl_words *words)
{
    size_t i;

    for (i = 0; i < words->n; i++) {
        free(words->text[i]);
    }
    free(words->text);
    free(words->order);
    *words = (struct fl_words){.n = 0};
}

/* As strcmp() with the `len` bytes of `text`. */
static int words_compare(const char *text, size_t len, const char *word)
{
    int rv = strncmp(text, word, len);

    return rv != 0 ? rv : (word[len] != '\0' ? -1 : 0);
}

/* The place in `order` of `text`, or where it would be inserted. */
static size_t words_place(const struct fl_words *words, const char *text, size_t len,
                          bool *ret_found)
{
    size_t low = 0;
    size_t high = words->n;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int side = words_compare(text, len, words->text[words->order[middle]]);

        if (side == 0) {
            *ret_found = true;
            return middle;
        }
        if (side < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

bool fl_words_find(const struct fl_words *words, const char *text, size_t len, uint32_t *ret)
{
    bool found;
    size_t at = words_place(words, text, len, &found);

    if (found) {
        *ret = words->order[at];
    }
    return found;
}

int fl_words_add(struct fl_words *words, const char *text, size_t len, uint32_t *ret)
{
    bool found;
    size_t at = words_place(words, text, len, &found);
    char *copy;

    if (found) {
        *ret = words->order[at];
        return FL_OK;
    }
    if (fl_grow(&words->text, &words->cap, words->n, sizeof(*words->text)) != FL_OK ||
        fl_grow(&words->order, &words->cap_order, words->n, sizeof(*words->order)) != FL_OK)
    {
        return FL_ENOMEM;
    }
    copy = malloc(len + 1);
    if (copy == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(copy, text, len);
    copy[len] = '\0';
    (void)memmove(words->order + at + 1, words->order + at,
                  (words->n - at) * sizeof(*words->order));
    words->order[at] = (uint32_t)words->n;
    words->text[words->n] = copy;
    *ret = (uint32_t)words->n++;
    return FL_OK;
}

int fl_words_sort(struct fl_words *words, uint32_t **ret)
{
    uint32_t *map = calloc(words->n + 1, sizeof(*map));
    char **sorted = calloc(words->n + 1, sizeof(*sorted));
    size_t i;

    if (map == NULL || sorted == NULL) {
        free(map);
        free(sorted);
        return FL_ENOMEM;
    }
    for (i = 0; i < words->n; i++) {
        map[words->order[i]] = (uint32_t)i;
        sorted[i] = words->text[words->order[i]];
    }
    for (i = 0; i < words->n; i++) {
        words->text[i] = sorted[i];
        words->order[i] = (uint32_t)i;
    }
    free(sorted);
    *ret = map;
    return FL_OK;
}

int fl_words_copy(struct fl_words *to, const struct fl_words *from)
{
    struct fl_words copy = {.n = 0};
    uint32_t number;
    size_t i;

    for (i = 0; i < from->n; i++) {
        if (fl_words_add(&copy, from->text[i], strlen(from->text[i]), &number) != FL_OK) {
            fl_words_done(&copy);
            return FL_ENOMEM;
        }
    }
    *to = copy;
    return FL_OK;
}
