/* The report of a client for a terminal (client_report.h). Pure. */

#include <inttypes.h>
#include <stdio.h>

#include "client/http/client_report.h"
#include "libfl/base/writer.h"

/* Tasks of the table; the page and the JSON have all that are kept. */
#define TEXT_TASKS 15

static void text_tasks(struct fl_writer *w, const struct fl_task_history *h)
{
    uint32_t n = h->n_records < TEXT_TASKS ? h->n_records : TEXT_TASKS;
    char asked[FL_OWNER_WORDS];
    char when[FL_OWNER_WORDS];
    char cpu[FL_OWNER_WORDS];
    char down[32];
    char up[32];
    uint32_t i;

    fl_writer_printf(w, "\n%8s  %-28s %-21s %9s %9s %9s  %s\n", "round", "asked to", "when",
                     "received", "sent", "processor", "result");
    for (i = 0; i < n; i++) {
        const struct fl_task_record *r = &h->records[h->n_records - 1 - i];

        fl_writer_printf(w, "%8" PRIu64 "  %-28s %-21s %9s %9s %9s  %s%s%s\n", r->round,
                         fl_owner_asked(r, asked), fl_owner_time(r->began_ms, when),
                         fl_str_bytes(down, sizeof(down), r->bytes_down),
                         fl_str_bytes(up, sizeof(up), r->bytes_up), fl_owner_span(r->cpu_ms, cpu),
                         fl_owner_result(r), r->reason[0] != '\0' ? ": " : "", r->reason);
    }
    if (n == 0) {
        fl_writer_printf(w, "%8s\n", "none yet");
    }
}

static void text_totals(struct fl_writer *w, const struct fl_task_totals *t)
{
    char since[FL_OWNER_WORDS];
    char cpu[FL_OWNER_WORDS];
    char down[32];
    char up[32];

    fl_writer_printf(w,
                     "since %s: selected %" PRIu64 " times, %" PRIu64 " results accepted, %" PRIu64
                     " rejected, %" PRIu64 " tasks failed; received %s, sent %s, %s of processor "
                     "time\n",
                     fl_owner_time(t->since_ms, since), t->trainings, t->accepted, t->rejected,
                     t->failed, fl_str_bytes(down, sizeof(down), t->bytes_down),
                     fl_str_bytes(up, sizeof(up), t->bytes_up), fl_owner_span(t->cpu_ms, cpu));
}

int fl_owner_text(const struct fl_owner_facts *f, struct fl_buf *out)
{
    struct fl_writer w = {.out = out};
    const struct fl_task_history *h = &f->history;
    struct fl_owner_report report;
    char when[FL_OWNER_WORDS];
    uint32_t i;

    fl_owner_report(f, &report);
    fl_writer_printf(&w, "%s\n%s\nnext: %s\n", report.now, report.story, report.next);
    if (f->certificate_ms > 0) {
        fl_writer_printf(&w, "certificate: valid until %s\n",
                         fl_owner_time(f->certificate_ms, when));
    }
    text_totals(&w, &h->totals);
    text_tasks(&w, h);
    fl_writer_printf(&w, "\nlimits in force\n");
    for (i = 0; i < f->n_limits; i++) {
        fl_writer_printf(&w, "  %-38s %s (%s)\n", f->limits[i].what, f->limits[i].value,
                         f->limits[i].key);
    }
    if (h->n_errors > 0) {
        fl_writer_printf(&w, "\nlast errors\n");
    }
    for (i = h->n_errors; i > 0; i--) {
        const struct fl_task_error *e = &h->errors[i - 1];

        fl_writer_printf(&w, "  %s  %s", fl_owner_time(e->at_ms, when), e->text);
        if (e->n > 1) {
            fl_writer_printf(&w, " (%" PRIu64 " times)", e->n);
        }
        fl_writer_printf(&w, "\n");
    }
    return w.code;
}
