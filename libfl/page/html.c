/*
 * HTML with every text escaped (html.h). The format is interpreted here, so that a conversion for
 * text cannot bypass the escaping.
 */
#include "libfl/page/html.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"

#define HTML_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static const char *html_entity(uint8_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? HTML_REPLACEMENT : NULL;
    }
}

static void html_text(struct fl_html *html, const char *text)
{
    const uint8_t *p = (const uint8_t *)text;
    const uint8_t *plain = p; /* start of the bytes that need no escape */
    size_t left = strlen(text);

    while (left > 0) {
        size_t n = fl_str_utf8(p, left);
        const char *entity = n == 0 ? HTML_REPLACEMENT : html_entity(*p);

        n = n == 0 ? 1 : n;
        if (entity != NULL) {
            fl_writer_add(&html->w, plain, (size_t)(p - plain));
            fl_writer_add(&html->w, entity, strlen(entity));
            plain = p + n;
        }
        p += n;
        left -= n;
    }
    fl_writer_add(&html->w, plain, (size_t)(p - plain));
}

/* One conversion, *fmt behind its '%'; moves *fmt behind it. */
static void html_conversion(struct fl_html *html, const char **fmt, va_list *ap)
{
    const char *at = *fmt;
    double real;

    switch (*at) {
    case '%':
        fl_writer_add(&html->w, "%", 1);
        break;
    case 's':
        html_text(html, va_arg(*ap, const char *));
        break;
    case 'd':
        fl_writer_printf(&html->w, "%d", va_arg(*ap, int));
        break;
    case 'u':
        fl_writer_printf(&html->w, "%u", va_arg(*ap, unsigned));
        break;
    case 'z':
        FL_REQUIRE(at[1] == 'u');
        at++;
        fl_writer_printf(&html->w, "%zu", va_arg(*ap, size_t));
        break;
    case 'l':
        FL_REQUIRE(strncmp(at, "llu", 3) == 0);
        at += 2;
        fl_writer_printf(&html->w, "%llu", va_arg(*ap, unsigned long long));
        break;
    default:
        FL_REQUIRE(strncmp(at, ".1f", 3) == 0);
        at += 2;
        real = va_arg(*ap, double);
        fl_writer_printf(&html->w, "%.1f", isfinite(real) ? real : 0.0);
        break;
    }
    *fmt = at + 1;
}

void fl_html(struct fl_html *html, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    while (*fmt != '\0' && html->w.code == FL_OK) {
        size_t plain = strcspn(fmt, "%");

        fl_writer_add(&html->w, fmt, plain);
        fmt += plain;
        if (*fmt == '%') {
            fmt++;
            html_conversion(html, &fmt, &ap);
        }
    }
    va_end(ap);
}

const char *fl_html_path(const char *name, char out[FL_HTML_PATH])
{
    size_t used = 0;

    for (; *name != '\0' && used + 4 < FL_HTML_PATH; name++) {
        uint8_t c = (uint8_t)*name;

        if (c < 0x80 && (isalnum(c) || strchr("._-~", c) != NULL)) {
            out[used++] = (char)c;
        } else {
            used += (size_t)snprintf(out + used, FL_HTML_PATH - used, "%%%02X", c);
        }
    }
    out[used] = '\0';
    return out;
}
