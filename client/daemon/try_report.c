#include "client/daemon/try_report.h"

#include <stdarg.h>

#include "libfl/base/str.h"

static const char *const words[] = {[FL_TRY_OK] = "ok",
                                    [FL_TRY_WARNING] = "warning",
                                    [FL_TRY_NOT_TRIED] = "not tried",
                                    [FL_TRY_FAILED] = "FAILED"};

void fl_try_report_begin(struct fl_try_report *report, FILE *out, bool json)
{
    *report = (struct fl_try_report){.out = out, .json = json};
    if (json) {
        report->object = json_object();
        report->checks = json_array();
    }
}

void fl_try_say(struct fl_try_report *report, enum fl_try_result result, const char *what,
                const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)fl_str_clean(text); /* The text can come from the program. */
    report->n[result]++;
    if (report->json) {
        (void)json_array_append_new(report->checks,
                                    json_pack("{s:s, s:s, s:s}", "check", what, "result",
                                              result == FL_TRY_FAILED ? "failed" : words[result],
                                              "text", text));
        return;
    }
    (void)fprintf(report->out, "%-9s %s: %s\n", words[result], what, text);
    (void)fflush(report->out);
}

void fl_try_add_line(struct fl_try_report *report, const char *fmt, ...)
{
    va_list args;

    if (report->json) {
        return;
    }
    (void)fputs("            ", report->out);
    va_start(args, fmt);
    (void)vfprintf(report->out, fmt, args);
    va_end(args);
    (void)fputc('\n', report->out);
}

void fl_try_set(struct fl_try_report *report, const char *key, json_t *value)
{
    if (report->object == NULL) {
        json_decref(value);
        return;
    }
    (void)json_object_set_new(report->object, key, value);
}

bool fl_try_report_end(struct fl_try_report *report)
{
    bool good = report->n[FL_TRY_FAILED] == 0;

    if (report->json) {
        fl_try_set(report, "checks", report->checks);
        fl_try_set(report, "good", json_boolean(good));
        fl_json_print(report->object, report->out);
    } else {
        (void)fprintf(report->out, "%s: %zu ok, %zu failed, %zu warnings, %zu not tried\n",
                      good ? "good" : "NOT GOOD", report->n[FL_TRY_OK], report->n[FL_TRY_FAILED],
                      report->n[FL_TRY_WARNING], report->n[FL_TRY_NOT_TRIED]);
    }
    *report = (struct fl_try_report){.out = report->out, .json = report->json};
    return fflush(report->out) == 0 && good;
}
