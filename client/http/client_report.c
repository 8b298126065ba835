/*
 * The sentences of a client for its owner (client_report.h): one for each thing that it can be
 * doing, or that keeps it from more. Pure; tables and formats are in owner_text.c, owner_json.c and
 * owner_page.c.
 */

#include "client/http/client_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/utc.h"

#define DAY_MS UINT64_C(86400000)
/* Certificates are renewed with 28 % or more of their validity left: with less, renewal fails. */
#define CERTIFICATE_SHARE 4
/* The owner of one that is not renewed by itself is told so long before its end, at most. */
#define CERTIFICATE_DAYS 14

/* --- words --- */

const char *fl_owner_time(uint64_t ms, char out[FL_OWNER_WORDS])
{
    char text[FL_UTC_TEXT];

    if (ms == 0 || !fl_utc_text((int64_t)(ms / 1000), text)) {
        (void)snprintf(out, FL_OWNER_WORDS, "never");
    } else {
        (void)snprintf(out, FL_OWNER_WORDS, "%.10s %.5s UTC", text, text + 11);
    }
    return out;
}

const char *fl_owner_span(uint64_t ms, char out[FL_OWNER_WORDS])
{
    if (ms < 120000) {
        (void)snprintf(out, FL_OWNER_WORDS, "%.1f s", (double)ms / 1e3);
    } else if (ms < 120 * UINT64_C(60000)) {
        (void)snprintf(out, FL_OWNER_WORDS, "%" PRIu64 " min", ms / 60000);
    } else {
        (void)snprintf(out, FL_OWNER_WORDS, "%.1f h", (double)ms / 3.6e6);
    }
    return out;
}

const char *fl_owner_asked(const struct fl_task_record *r, char out[FL_OWNER_WORDS])
{
    if (r->kind == FL_TASK_EVALUATION) {
        (void)snprintf(out, FL_OWNER_WORDS, "measure the model");
    } else if (r->plan == FL_TASK_SOME_LAYERS) {
        (void)snprintf(out, FL_OWNER_WORDS, "train, send %" PRIu32 " of %" PRIu32 " layers",
                       r->layers_asked, r->layers);
    } else {
        (void)snprintf(out, FL_OWNER_WORDS, "%s",
                       r->plan == FL_TASK_ALL_LAYERS ? "train, send all layers" : "train");
    }
    return out;
}

const char *fl_owner_result(const struct fl_task_record *r)
{
    static const char *const words[FL_TASK_ENDS] = {
        [FL_TASK_OPEN] = "unfinished",   [FL_TASK_ACCEPTED] = "accepted",
        [FL_TASK_REJECTED] = "rejected", [FL_TASK_DISMISSED] = "not needed",
        [FL_TASK_FAILED] = "failed",     [FL_TASK_REPLACED] = "replaced",
        [FL_TASK_MEASURED] = "sent",
    };

    return r->end < FL_TASK_ENDS ? words[r->end] : "unknown";
}

/* --- sentences --- */

FL_PRINTF(3, 4) static void owner_add(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(out + used, size - used, fmt, ap);
    va_end(ap);
}

#define OWNER_NOW(ret, ...)  (void)snprintf((ret)->now, sizeof((ret)->now), __VA_ARGS__)
#define OWNER_NEXT(ret, ...) (void)snprintf((ret)->next, sizeof((ret)->next), __VA_ARGS__)

static void owner_round(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    static const char *const words[FL_SESSION_COUNT] = {
        [FL_SESSION_FETCHING] = "receiving the model",
        [FL_SESSION_TRAINING] = "training on the data of this device",
        [FL_SESSION_REPORTED] = "trained, waiting for the server to ask for the result",
        [FL_SESSION_PUSHING] = "sending the result",
    };
    const struct fl_task_record *r = fl_task_history_last(&f->history, FL_TASK_TRAINING);

    OWNER_NOW(ret, "Round %" PRIu64 ": %s.", r != NULL ? r->round : 0, words[f->state]);
}

static void owner_waits(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    const struct fl_task_record *r = fl_task_history_last(&f->history, FL_TASK_TRAINING);

    if (f->unavailable[0] != '\0') {
        OWNER_NOW(ret, "Connected to %s, gets no tasks now: %s.", f->server, f->unavailable);
        OWNER_NEXT(ret, "Nothing: tasks follow when the rules of 'when' hold again.");
        return;
    }
    if (f->state == FL_SESSION_DONE) {
        OWNER_NOW(ret, "All rounds are done, waiting for more from %s", f->server);
    } else {
        OWNER_NOW(ret, "Waiting for a task from %s", f->server);
    }
    if (r != NULL) {
        owner_add(ret->now, sizeof(ret->now), "; last task: round %" PRIu64 ", %s", r->round,
                  fl_owner_result(r));
    }
    owner_add(ret->now, sizeof(ret->now), ".");
}

/* There is no session, and none is to be: the client left by itself. */
static void owner_left(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    OWNER_NOW(ret, "Disconnected from %s by itself: %s.", f->server,
              f->unavailable[0] != '\0' ? f->unavailable : f->history.trouble);
    OWNER_NEXT(ret, "Nothing: it reconnects when its own limits allow it.");
}

static void owner_offline(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    const char *why = f->history.trouble;

    if (f->data_trouble[0] != '\0') {
        ret->needs_owner = true;
        OWNER_NOW(ret, "Not connected, as there is no data to train on: %s.", f->data_trouble);
        OWNER_NEXT(ret,
                   "Put the data back where data.path says; the client looks again by itself.");
    } else if (f->history.link == FL_TASK_LINK_LEFT || f->unavailable[0] != '\0') {
        owner_left(f, ret);
    } else if (f->history.link == FL_TASK_LINK_REFUSED) {
        ret->needs_owner = true;
        OWNER_NOW(ret, "The server %s refused this client: %s.", f->server, why);
        OWNER_NEXT(ret, "Ask the operator of the federation, who sees the reason with 'flctl "
                        "clients'; the client tries again by itself.");
    } else if (f->history.link == FL_TASK_LINK_LOST) {
        ret->needs_owner = true;
        OWNER_NOW(ret, "Not connected to %s, trying again%s%s.", f->server,
                  why[0] != '\0' ? ": " : "", why);
        OWNER_NEXT(ret, "If it lasts: check the network of this device and the address in "
                        "'server', then ask the operator whether the server runs.");
    } else {
        OWNER_NOW(ret, "Connecting to %s.", f->server);
    }
}

static bool owner_trainer(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    if (f->trainer[0] != '\0') {
        ret->needs_owner = true;
        OWNER_NOW(ret, "The training program does not start, trying again: %s.", f->trainer);
        OWNER_NEXT(ret, "Repair the program of command.program; fl-clientd --try-trainer CONFIG "
                        "tests it without a server.");
        return true;
    }
    if (f->trainer_starts) {
        OWNER_NOW(ret, "Starting the training program.");
    }
    return f->trainer_starts;
}

/* An expired certificate explains the other trouble, so its advice replaces theirs. */
static void owner_certificate(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    uint64_t end = f->certificate_ms;
    uint64_t whole = end > f->certificate_begin_ms ? end - f->certificate_begin_ms : 0;
    uint64_t early = whole / CERTIFICATE_SHARE;
    char text[FL_OWNER_WORDS];

    early = early < CERTIFICATE_DAYS * DAY_MS ? early : CERTIFICATE_DAYS * DAY_MS;
    if (end == 0 || f->now_ms + early < end) {
        return;
    }
    ret->needs_owner = true;
    owner_add(ret->now, sizeof(ret->now), " Its certificate %s %s.",
              f->now_ms < end ? "expires" : "expired", fl_owner_time(end, text));
    OWNER_NEXT(ret, "%s",
               f->certificate_renews
                   ? "The certificate is renewed over the connection, which has failed so far: see "
                     "the errors. After its end only a new invitation helps (fl-clientd --join)."
                   : "Replace the files of tls.certificate and tls.key, then reload the client "
                     "(SIGHUP).");
}

/* --- the story --- */

static void owner_last(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    const struct fl_task_record *r = fl_task_history_last(&f->history, FL_TASK_TRAINING);
    char down[32];
    char up[32];
    char when[FL_OWNER_WORDS];
    char cpu[FL_OWNER_WORDS];
    char asked[FL_OWNER_WORDS];

    if (r == NULL) {
        owner_add(ret->story, sizeof(ret->story), "It has had no task yet. ");
        return;
    }
    owner_add(ret->story, sizeof(ret->story),
              "Last task, of %s: %s (round %" PRIu64 "). It received %s, sent %s and used %s of "
              "processor time; result: %s%s%s. ",
              fl_owner_time(r->began_ms, when), fl_owner_asked(r, asked), r->round,
              fl_str_bytes(down, sizeof(down), r->bytes_down),
              fl_str_bytes(up, sizeof(up), r->bytes_up), fl_owner_span(r->cpu_ms, cpu),
              fl_owner_result(r), r->reason[0] != '\0' ? ", " : "", r->reason);
}

static void owner_story(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    ret->story[0] = '\0';
    if (f->history.federation[0] != '\0') {
        owner_add(ret->story, sizeof(ret->story),
                  "This device takes part in federation '%s' as '%s'. ", f->history.federation,
                  f->client);
    } else {
        owner_add(ret->story, sizeof(ret->story),
                  "This device, '%s', has not joined a federation yet. ", f->client);
    }
    owner_last(f, ret);
    owner_add(ret->story, sizeof(ret->story),
              "The data itself stays on this device: it sends changes of the model, the number of "
              "its samples and how well the model fits them");
    if (f->least_group > 0) {
        owner_add(ret->story, sizeof(ret->story),
                  ", and, where the federation asks for them, means of at least %" PRIu64
                  " samples each ('summaries: yes')",
                  f->least_group);
    }
    owner_add(ret->story, sizeof(ret->story), ".");
}

void fl_owner_report(const struct fl_owner_facts *f, struct fl_owner_report *ret)
{
    *ret = (struct fl_owner_report){.needs_owner = false};
    OWNER_NEXT(ret, "Nothing.");
    if (!owner_trainer(f, ret)) {
        switch (f->state) {
        case FL_SESSION_OFFLINE:
        case FL_SESSION_CONNECTING:
        case FL_SESSION_GREETING:
        case FL_SESSION_COUNT:
            owner_offline(f, ret);
            break;
        case FL_SESSION_READY:
        case FL_SESSION_DONE:
            owner_waits(f, ret);
            break;
        case FL_SESSION_FETCHING:
        case FL_SESSION_TRAINING:
        case FL_SESSION_REPORTED:
        case FL_SESSION_PUSHING:
            owner_round(f, ret);
            break;
        case FL_SESSION_STOPPED:
            OWNER_NOW(ret, "Stopping.");
            break;
        }
    }
    owner_certificate(f, ret);
    owner_story(f, ret);
}
