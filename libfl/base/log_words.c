#include "libfl/base/log_words.h"

#include <string.h>

/* Length of the key of a "key=value" at `s`; 0: no such word. */
static size_t key_of(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return n > 0 && n < 40 && s[n] == '=' ? n : 0;
}

/* Length of the word at `s`: to the next blank, or to the end of its quotes. */
static size_t word_at(const char *s)
{
    const char *quote = strstr(s, "='");
    size_t n = strcspn(s, " ");

    if (quote != NULL && quote < s + n) {
        const char *end = strchr(quote + 2, '\'');

        if (end != NULL && (end[1] == ' ' || end[1] == '\0')) {
            return (size_t)(end + 1 - s);
        }
    }
    return n;
}

const char *fl_log_words(const char *text)
{
    const char *fields = NULL;
    const char *s = text;

    while (*s != '\0') {
        size_t n = word_at(s);

        if (key_of(s) == 0) {
            fields = NULL;
        } else if (fields == NULL) {
            fields = s;
        }
        s += n;
        s += strspn(s, " ");
    }
    return fields != NULL ? fields : s;
}

bool fl_log_words_next(const char **at, struct fl_log_word *ret)
{
    const char *s = *at;
    size_t n = word_at(s);
    struct fl_log_word word = {.key = s, .key_len = key_of(s)};

    if (word.key_len == 0) {
        return false;
    }
    word.value = s + word.key_len + 1;
    word.value_len = n - word.key_len - 1;
    if (word.value_len >= 2 && word.value[0] == '\'' && word.value[word.value_len - 1] == '\'') {
        word.value++;
        word.value_len -= 2;
        word.quoted = true;
    }
    s += n;
    *at = s + strspn(s, " ");
    *ret = word;
    return true;
}

bool fl_log_note_has(const struct fl_log_note *note, const char *key, size_t len)
{
    size_t i;

    for (i = 0; note != NULL && i < note->n; i++) {
        if (strlen(note->fields[i].name) == len && strncmp(note->fields[i].name, key, len) == 0) {
            return true;
        }
    }
    return false;
}
