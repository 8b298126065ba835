/* The frame of all pages: head, policy, style sheet, script (page.h). Pure. */
#include "libfl/page/page.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/utc.h"
#include "libfl/page/overview_impl.h"
#include "libfl/page/page_assets.h"

const char *fl_page_policy(char out[FL_PAGE_POLICY])
{
    (void)snprintf(out, FL_PAGE_POLICY,
                   "default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; "
                   "base-uri 'none'; form-action 'self'",
                   fl_page_css_hash, fl_page_js_hash);
    return out;
}

void fl__page_begin(struct fl_html *html, const char *title, const char *federation,
                    enum fl__page_kind kind)
{
    char policy[FL_PAGE_POLICY];

    fl_html(html,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
            "<meta name=\"color-scheme\" content=\"light dark\"><title>%s – %s</title><style>",
            fl_page_policy(policy), title, federation);
    fl_writer_add(&html->w, fl_page_css, fl_page_css_len);
    fl_html(html, "</style></head>\n");
    if (kind == FL_PAGE_LIVE || kind == FL_PAGE_ALONE) {
        fl_html(html, "<body data-live>");
    } else {
        fl_html(html, "<body>");
    }
    fl_html(html,
            "<a class=\"skip\" href=\"#main\">Skip to content</a>"
            "<header><p class=\"name\">%s</p>",
            federation);
    if (kind != FL_PAGE_FILE && kind != FL_PAGE_ALONE) {
        fl_html(html, "<nav aria-label=\"Pages\"><a href=\"/\">Overview</a>"
                      "<a href=\"/clients\">Clients</a></nav>");
    }
    fl_html(html, "</header>\n<main id=\"main\" tabindex=\"-1\">");
}

void fl__page_end(struct fl_html *html, const char *version)
{
    fl_html(html, "</main>\n<footer><p>fl %s</p></footer><script>", version);
    fl_writer_add(&html->w, fl_page_js, fl_page_js_len);
    fl_html(html, "</script></body></html>\n");
}

void fl__page_time(struct fl_html *html, const struct fl_page_overview *o, uint64_t ms)
{
    char text[FL_CHART_TEXT];

    if (o->simulated) {
        fl_html(html, "%s", fl_chart_text(FL_CHART_TIME, (double)ms * 1000, text));
    } else if (ms == 0 || !fl_utc_text((int64_t)(ms / 1000), text)) {
        fl_html(html, "–");
    } else {
        fl_html(html, "<time datetime=\"%s\">%s</time>", text, text);
    }
}

const char *fl__page_age(const struct fl_page_overview *o, uint64_t ms, char out[FL_CHART_TEXT])
{
    double ago = o->now_ms > ms ? (double)(o->now_ms - ms) : 0;

    if (ms == 0 && !o->simulated) {
        (void)snprintf(out, FL_CHART_TEXT, "–");
        return out;
    }
    return fl_chart_text(FL_CHART_TIME, ago < 1000 && !o->simulated ? 0 : ago * 1000, out);
}
