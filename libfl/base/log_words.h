#ifndef FL_BASE_LOG_WORDS_H
#define FL_BASE_LOG_WORDS_H

/* The trailing key=value words of a log line. Private to the outputs of a log. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/log.h"

struct fl_log_word {
    const char *key;
    size_t key_len;
    const char *value; /* without its quotes */
    size_t value_len;
    bool quoted;
};

/* Start of the trailing words in `text`; its end: there is none. */
const char *fl_log_words(const char *text);
/* The word at `*at`, which moves behind it; false: there is none. */
bool fl_log_words_next(const char **at, struct fl_log_word *ret);
/* Does the note have a field of this name? NULL: it has none. */
bool fl_log_note_has(const struct fl_log_note *note, const char *key, size_t len);

#endif
