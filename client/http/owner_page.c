/* The page of a client for its owner: turns the facts into what libfl/page shows. Pure. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/http/client_report.h"
#include "libfl/page/own_page.h"

#define PAGE_FACTS 6

struct page_work {
    struct fl_owner_report report;
    struct fl_page_own_task tasks[FL_TASK_RECORDS];
    struct fl_page_own_row facts[PAGE_FACTS], limits[FL_OWNER_LIMITS], errors[FL_TASK_ERRORS];
    char texts[PAGE_FACTS][2][FL_OWNER_WORDS]; /* values and notes of the facts */
    char error_texts[FL_TASK_ERRORS][2][FL_OWNER_WORDS];
    char kept[256];
};

#define PAGE_TEXT(out, ...) (void)snprintf(out, FL_OWNER_WORDS, __VA_ARGS__)

static void page_fill_facts(struct page_work *w, const struct fl_owner_facts *f)
{
    static const char *const names[PAGE_FACTS] = {
        "Selected", "Results accepted", "Received", "Sent", "Processor time", "Certificate until"};
    const struct fl_task_totals *t = &f->history.totals;
    char since[FL_OWNER_WORDS];
    char bytes[32];
    size_t i;

    (void)fl_owner_time(t->since_ms, since);
    PAGE_TEXT(w->texts[0][0], "%" PRIu64, t->trainings);
    PAGE_TEXT(w->texts[0][1], "times to train, since %.40s", since);
    PAGE_TEXT(w->texts[1][0], "%" PRIu64, t->accepted);
    PAGE_TEXT(w->texts[1][1], "%" PRIu64 " rejected, %" PRIu64 " failed", t->rejected, t->failed);
    PAGE_TEXT(w->texts[2][0], "%s", fl_str_bytes(bytes, sizeof(bytes), t->bytes_down));
    PAGE_TEXT(w->texts[2][1], "from the server");
    PAGE_TEXT(w->texts[3][0], "%s", fl_str_bytes(bytes, sizeof(bytes), t->bytes_up));
    PAGE_TEXT(w->texts[3][1], "to the server");
    PAGE_TEXT(w->texts[4][0], "%s", fl_owner_span(t->cpu_ms, since));
    PAGE_TEXT(w->texts[4][1], "training program included");
    PAGE_TEXT(w->texts[5][0], "%s",
              f->certificate_ms > 0 ? fl_owner_time(f->certificate_ms, since) : "none");
    PAGE_TEXT(w->texts[5][1], "%s",
              f->certificate_ms == 0  ? "the connection is not encrypted"
              : f->certificate_renews ? "renewed by itself"
                                      : "renewed by its owner");
    for (i = 0; i < PAGE_FACTS; i++) {
        w->facts[i] = (struct fl_page_own_row){names[i], w->texts[i][0], w->texts[i][1]};
    }
}

static void page_fill_tasks(struct page_work *w, const struct fl_task_history *h)
{
    uint32_t i;

    for (i = 0; i < h->n_records; i++) {
        const struct fl_task_record *r = &h->records[h->n_records - 1 - i];
        struct fl_page_own_task *t = &w->tasks[i];

        *t = (struct fl_page_own_task){.round = r->round,
                                       .began_ms = r->began_ms,
                                       .ended_ms = r->ended_ms,
                                       .bytes_down = r->bytes_down,
                                       .bytes_up = r->bytes_up,
                                       .cpu_ms = r->cpu_ms,
                                       .result = fl_owner_result(r),
                                       .reason = r->reason,
                                       .bad =
                                           r->end == FL_TASK_FAILED || r->end == FL_TASK_REJECTED};
        (void)fl_owner_asked(r, t->asked);
    }
}

static void page_fill_rows(struct page_work *w, const struct fl_owner_facts *f)
{
    const struct fl_task_history *h = &f->history;
    size_t i;

    for (i = 0; i < f->n_limits; i++) {
        w->limits[i] =
            (struct fl_page_own_row){f->limits[i].what, f->limits[i].value, f->limits[i].key};
    }
    for (i = 0; i < h->n_errors; i++) {
        const struct fl_task_error *e = &h->errors[h->n_errors - 1 - i];

        (void)fl_owner_time(e->at_ms, w->error_texts[i][0]);
        PAGE_TEXT(w->error_texts[i][1], "%" PRIu64, e->n);
        w->errors[i] =
            (struct fl_page_own_row){w->error_texts[i][0], w->error_texts[i][1], e->text};
    }
}

int fl_owner_page(const struct fl_owner_facts *f, struct fl_buf *out)
{
    struct page_work *w = calloc(1, sizeof(*w));
    char since[FL_OWNER_WORDS];
    int rv;

    if (w == NULL) {
        return FL_ENOMEM;
    }
    fl_owner_report(f, &w->report);
    page_fill_facts(w, f);
    page_fill_tasks(w, &f->history);
    page_fill_rows(w, f);
    if (f->kept) {
        (void)snprintf(w->kept, sizeof(w->kept), "The last %d tasks are kept, also over a restart.",
                       FL_TASK_RECORDS);
    } else {
        (void)snprintf(w->kept, sizeof(w->kept),
                       "The last %d tasks since the start of the client, %s, are kept; they could "
                       "not be saved.",
                       FL_TASK_RECORDS, fl_owner_time(f->started_ms, since));
    }
    rv = fl_page_own(&(struct fl_page_own){.client = f->client,
                                           .version = PACKAGE_VERSION,
                                           .now = w->report.now,
                                           .story = w->report.story,
                                           .next = w->report.next,
                                           .needs_owner = w->report.needs_owner,
                                           .facts = w->facts,
                                           .n_facts = PAGE_FACTS,
                                           .limits = w->limits,
                                           .n_limits = f->n_limits,
                                           .errors = w->errors,
                                           .n_errors = f->history.n_errors,
                                           .tasks = w->tasks,
                                           .n_tasks = f->history.n_records,
                                           .kept = w->kept},
                     out);
    free(w);
    return rv;
}
