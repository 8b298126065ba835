#ifndef FL_IMPORT_WORDS_H
#define FL_IMPORT_WORDS_H

/*
 * A list of different texts, each with its number: class names, the values of a category. New ones
 * get the next number; a sorted list has them in byte order, so that it does not depend on the
 * order of the samples.
 *
 * Ownership: the list owns its texts. Threading: none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl_words {
    char **text; /* [n], by number */
    size_t n, cap;
    /* Private: the numbers in the order of their texts. */
    uint32_t *order;
    size_t cap_order;
};

void fl_words_done(struct fl_words *words);
/* Find the `len` bytes of `text`, which contain no NUL. False: not in the list. */
bool fl_words_find(const struct fl_words *words, const char *text, size_t len, uint32_t *ret);
/* Find a text, or add it. FL_ENOMEM: the list is unchanged. */
FL_MUST_CHECK int fl_words_add(struct fl_words *words, const char *text, size_t len, uint32_t *ret);
/*
 * Number the texts in byte order. *ret[old number] is the new number; returned owned: free().
 * FL_ENOMEM: the list is unchanged.
 */
FL_MUST_CHECK int fl_words_sort(struct fl_words *words, uint32_t **ret);
FL_MUST_CHECK int fl_words_copy(struct fl_words *to, const struct fl_words *from);

#endif
