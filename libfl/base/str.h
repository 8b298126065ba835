#ifndef FL_BASE_STR_H
#define FL_BASE_STR_H

/* Small text helpers without a locale. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* Longest name of a client, federation, unit, policy …, with its NUL. */
#define FL_NAME_MAX 128

/* Copy `src` with its NUL; FL_ELIMIT (and `dst` untouched) when it does not fit. */
FL_MUST_CHECK int fl_str_copy(char *dst, size_t size, const char *src);
bool fl_str_ends_with(const char *text, const char *end);
/* Heap copy, or NULL without memory. Free with free(). */
char *fl_str_dup(const char *src);
/* Heap copy of a NULL-terminated list (NULL: an empty one), or NULL without memory. */
char **fl_str_list_dup(const char *const *list);
void fl_str_list_free(char **list); /* NULL is allowed. */
/* Parse a whole decimal number with nothing after it. */
FL_MUST_CHECK int fl_str_to_u64(const char *text, uint64_t *ret);
FL_MUST_CHECK int fl_str_to_i64(const char *text, int64_t *ret);
FL_MUST_CHECK int fl_str_to_double(const char *text, double *ret);
/*
 * The name in `names` nearest to `word` by edit distance; when none is near enough to be a likely
 * typing slip, the first that begins with `word` (three letters at least), else NULL.
 */
const char *fl_str_nearest(const char *word, const char *const *names, size_t n);
/*
 * A name that is safe as a file name and a log field: 1 to FL_NAME_MAX - 1
 * characters of [A-Za-z0-9._-], not starting with a dot.
 */
bool fl_name_valid(const char *name);
/*
 * Is the name allowed for new objects? It must also not start with '-', which programs take for an
 * option. Existing names, from versions that allowed it, only need to be valid.
 */
bool fl_name_allowed(const char *name);
/* Length of the UTF-8 sequence at `s`, 0 when it is invalid (Unicode 15, table 3-7); len > 0. */
size_t fl_str_utf8(const uint8_t *s, size_t len);
/*
 * Make an untrusted text safe for a log line or a terminal, in place: control characters and
 * invalid UTF-8 become '?'. Returns `text`; NULL is allowed.
 */
char *fl_str_clean(char *text);
/*
 * Copy a text that may be too long: complete when it fits `out`, otherwise its start (what
 * happened) and, as the larger share, its end (the last output of a program). Never splits a UTF-8
 * sequence. Returns `out`; NULL is the empty text. size > 8.
 */
char *fl_str_ends(char *out, size_t size, const char *text);
/* Human-readable size such as "1.5 MB"; returns `out`. */
const char *fl_str_bytes(char *out, size_t size, uint64_t bytes);

#endif
