#ifndef FL_PAGE_HTML_H
#define FL_PAGE_HTML_H

/*
 * Writes HTML and SVG into a buffer. The format is markup of the program, every %s in it is a text
 * and is escaped: no function writes a text without that. The only exceptions are the embedded
 * style sheet and script (page_assets.h), which no peer can influence.
 *
 * Escaped: & < > " ' as entities, so a text is safe between tags and in quoted attributes; control
 * characters, and bytes that are not UTF-8, become U+FFFD. A text is not safe as a tag, an
 * unquoted attribute or in a script. A link to a name is built by fl_html_path().
 *
 * Threading: as the buffer.
 */

#include "libfl/base/writer.h"

struct fl_html {
    struct fl_writer w;
};

/*
 * Append markup. Conversions: %s, %d, %u, %zu, %llu, %%, and %.1f, a
 * coordinate with one decimal (0 when it is not finite). Others are an error of the caller
 * (FL_REQUIRE).
 */
FL_PRINTF(2, 3) void fl_html(struct fl_html *html, const char *fmt, ...);

/* Room for a path. */
#define FL_HTML_PATH 512
/*
 * `name` as one segment of the path of a URL: everything but letters, digits, '.', '_', '-' and '~'
 * is percent-encoded; cut when it is too long. Returns `out`.
 */
const char *fl_html_path(const char *name, char out[FL_HTML_PATH]);

#endif
