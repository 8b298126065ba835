/* Frame, scales and tables of charts (chart.h). Pure; memory only in the buffer of the writer. */
#include "libfl/page/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/page/chart_impl.h"

#define CHART_LARGEST  1e300
#define CHART_SMALLEST 1e-300
#define CHART_TICKS    4

bool fl__chart_known(double value)
{
    return fabs(value) <= CHART_LARGEST; /* NAN is not. */
}

/* --- values as text --- */

struct chart_unit_step {
    double base; /* base units in one */
    const char *name;
    double from; /* smallest magnitude that is shown in it */
};

static const struct chart_unit_step chart_bytes[] = {
    {1, "B", 0}, {1e3, "kB", 1e3}, {1e6, "MB", 1e6}, {1e9, "GB", 1e9}, {1e12, "TB", 1e12}};
static const struct chart_unit_step chart_times[] = {
    {1, "µs", 0},         {1e3, "ms", 1e3},      {1e6, "s", 1e6},
    {60e6, "min", 120e6}, {3600e6, "h", 7200e6}, {86400e6, "d", 172800e6}};

static const struct chart_unit_step *chart_unit_of(enum fl_chart_unit unit, double value)
{
    const struct chart_unit_step *steps = unit == FL_CHART_BYTES ? chart_bytes : chart_times;
    size_t n = unit == FL_CHART_BYTES ? sizeof(chart_bytes) / sizeof(chart_bytes[0])
                                      : sizeof(chart_times) / sizeof(chart_times[0]);

    while (n > 1 && fabs(value) < steps[n - 1].from) {
        n--;
    }
    return &steps[n - 1];
}

const char *fl_chart_text(enum fl_chart_unit unit, double value, char out[FL_CHART_TEXT])
{
    const struct chart_unit_step *step;

    if (!fl__chart_known(value)) {
        (void)snprintf(out, FL_CHART_TEXT, "–");
        return out;
    }
    switch (unit) {
    case FL_CHART_BYTES:
    case FL_CHART_TIME:
        step = chart_unit_of(unit, value);
        (void)snprintf(out, FL_CHART_TEXT, step->base > 1 ? "%.3g %s" : "%.0f %s",
                       value / step->base, step->name);
        break;
    case FL_CHART_SHARE:
        (void)snprintf(out, FL_CHART_TEXT, "%.4g %%", value * 100);
        break;
    case FL_CHART_COUNT:
        (void)snprintf(out, FL_CHART_TEXT, fabs(value) < 1e15 ? "%.0f" : "%.4g", value);
        break;
    default:
        (void)snprintf(out, FL_CHART_TEXT, "%.4g", value);
        break;
    }
    return out;
}

const char *fl__chart_cut(const char *text, size_t n, char *out, size_t size)
{
    size_t left = strlen(text);
    size_t used = 0;

    while (left > 0 && n > 0) {
        size_t len = fl_str_utf8((const uint8_t *)text, left);

        len = len == 0 ? 1 : len;
        if (used + len + sizeof("…") > size) {
            break;
        }
        if (n == 1 && left > len) {
            break;
        }
        (void)memcpy(out + used, text, len);
        used += len;
        text += len;
        left -= len;
        n--;
    }
    (void)snprintf(out + used, size - used, "%s", left > 0 ? "…" : "");
    return out;
}

/* --- scales --- */

/* The smallest of 1, 2, 5 times a power of ten that divides `range` into at most `n` steps. */
static double chart_nice_step(double range, int n)
{
    double raw = range / n;
    double power = pow(10, floor(log10(raw)));

    if (raw <= power * 1.0001) {
        return power;
    }
    return raw <= 2 * power ? 2 * power : raw <= 5 * power ? 5 * power : 10 * power;
}

struct fl__chart_scale fl__chart_scale(enum fl_chart_unit unit, double least, double most,
                                       bool zero)
{
    struct fl__chart_scale s = {.factor = 1, .unit = ""};
    const struct chart_unit_step *step;

    if (unit == FL_CHART_BYTES || unit == FL_CHART_TIME) {
        step = chart_unit_of(unit, fmax(fabs(least), fabs(most)));
        s.factor = 1 / step->base;
        s.unit = step->name;
    } else if (unit == FL_CHART_SHARE) {
        s.factor = 100;
        s.unit = "%";
    }
    s.lo = least * s.factor;
    s.hi = most * s.factor;
    if (zero) {
        s.lo = fmin(s.lo, 0);
        s.hi = fmax(s.hi, 0);
    }
    if (!(s.hi - s.lo > fmax(fmax(fabs(s.hi), fabs(s.lo)) * 1e-6, CHART_SMALLEST))) {
        double room = fabs(s.hi) > CHART_SMALLEST ? fabs(s.hi) * 0.1 : 1;

        s.hi += room;
        s.lo -= zero && s.lo >= 0 ? 0 : room;
    }
    s.step = chart_nice_step(s.hi - s.lo, CHART_TICKS);
    if (unit == FL_CHART_COUNT) {
        s.step = fmax(s.step, 1);
    }
    s.lo = floor(s.lo / s.step + 1e-9) * s.step;
    s.hi = ceil(s.hi / s.step - 1e-9) * s.step;
    return s;
}

double fl__chart_place(const struct fl__chart_scale *scale, double value)
{
    return (value * scale->factor - scale->lo) / (scale->hi - scale->lo);
}

void fl__chart_group(size_t i, size_t m, size_t n, size_t *from, size_t *to)
{
    *from = i * n / m;
    *to = (i + 1) * n / m;
}

void fl__chart_y_axis(struct fl_html *html, const struct fl__chart_scale *scale, double right)
{
    int ticks = (int)lround((scale->hi - scale->lo) / scale->step);
    int i;

    if (scale->unit[0] != '\0') {
        fl_html(html, "<text x=\"%d\" y=\"10\" class=\"e\">%s</text>", CHART_LEFT - 6, scale->unit);
    }
    for (i = 0; i <= ticks; i++) {
        double value = scale->lo + i * scale->step;
        double y = CHART_BOTTOM - (double)i / ticks * (CHART_BOTTOM - CHART_TOP);
        char text[FL_CHART_TEXT];

        (void)snprintf(text, sizeof(text), "%.4g", fabs(value) < scale->step * 1e-9 ? 0 : value);
        fl_html(html, "<path class=\"g\" d=\"M%d %.1fH%.1f\"/>", CHART_LEFT, y, right);
        fl_html(html, "<text x=\"%d\" y=\"%.1f\" class=\"e\">%s</text>", CHART_LEFT - 6, y + 4,
                text);
    }
}

/* --- the frame --- */

bool fl__chart_begin(struct fl_html *html, const struct fl_chart_head *head, bool known)
{
    fl_html(html, "<figure class=\"card\" id=\"%s\"><h3 id=\"%s-t\">%s</h3>", head->id, head->id,
            head->title);
    if (!known) {
        fl_html(html, "<p class=\"none\">No values yet.</p><figcaption>%s</figcaption></figure>\n",
                head->caption);
        return false;
    }
    if (head->headline != NULL) {
        fl_html(html, "<p class=\"big\">%s</p>", head->headline);
    }
    return true;
}

void fl__chart_svg(struct fl_html *html, const struct fl_chart_head *head, int height)
{
    fl_html(html,
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"%s-t\" "
            "aria-describedby=\"%s-c\">",
            CHART_WIDTH, height, head->id, head->id);
}

void fl__chart_svg_end(struct fl_html *html)
{
    fl_html(html, "</svg>");
}

void fl__chart_caption(struct fl_html *html, const struct fl_chart_head *head, size_t each,
                       bool mean, size_t more)
{
    fl_html(html, "<figcaption id=\"%s-c\">%s", head->id, head->caption);
    if (each > 1) {
        fl_html(html,
                mean ? " A bar is the mean of about %zu rounds."
                     : " A point stands for about %zu rounds.",
                each);
    }
    if (more > 0) {
        fl_html(html, " %zu more are not drawn.", more);
    }
    fl_html(html, "</figcaption>");
}

void fl__chart_table(struct fl_html *html, const struct fl_chart_head *head)
{
    fl_html(
        html,
        "<details id=\"%s-d\"><summary>%s as a table</summary><div class=\"scroll\" tabindex=\"0\" "
        "role=\"group\" aria-label=\"%s, table\"><table><caption class=\"hide\">%s</caption>",
        head->id, head->title, head->title, head->caption);
}

void fl__chart_end(struct fl_html *html)
{
    fl_html(html, "</tbody></table></div></details></figure>\n");
}
