#include "libfl/base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"

#define FL_LOG_LINE_MAX 2048

const char *const fl_log_names[] = {
    [FL_LOG_ERROR] = "error", [FL_LOG_WARNING] = "warning", [FL_LOG_NOTICE] = "notice",
    [FL_LOG_INFO] = "info",   [FL_LOG_DEBUG] = "debug",     NULL};

#define LOG_EVENT_ROW(id, name_, message_id_) \
    [FL_LOG_EVENT_##id] = {.name = (name_), .message_id = (message_id_)},

const struct fl_log_event_row fl_log_events[FL_LOG_EVENT_N] = {FL_LOG_EVENTS(LOG_EVENT_ROW)};

static void log_pass(const struct fl_log *log, enum fl_log_level level, const char *component,
                     const char *text, const struct fl_log_note *note)
{
    if (note != NULL && log->note != NULL) {
        log->note(log->ctx, level, component, text, note);
    } else {
        log->sink(log->ctx, level, component, text);
    }
}

void fl_log(const struct fl_log *log, enum fl_log_level level, const char *component,
            const char *fmt, ...)
{
    char text[FL_LOG_LINE_MAX - 128];
    va_list ap;

    if (log == NULL || log->sink == NULL || (int)level > atomic_load(&log->level)) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log->sink(log->ctx, level, component, fl_str_clean(text));
}

/* The caller holds the lock. now_ms UINT64_MAX ends every span. */
static void log_left_out_lines(const struct fl_log *log, uint64_t now_ms)
{
    struct fl_log_gate_place left;
    char text[256];

    while (fl_log_gate_due(&log->limit->gate, now_ms, &left)) {
        (void)snprintf(text, sizeof(text), "%llu more lines like this one from %s in %u s: %s...",
                       (unsigned long long)left.left_out, left.peer, FL_LOG_GATE_SPAN_MS / 1000,
                       left.sample);
        log->sink(log->ctx, FL_LOG_WARNING, "log", fl_str_clean(text));
    }
}

/* What belongs to a line beside its text. */
struct log_about {
    const char *peer, *reason; /* peer NULL: the line is not limited */
    const struct fl_log_note *note;
};

FL_PRINTF(5, 0)
static void log_about(const struct fl_log *log, enum fl_log_level level, const char *component,
                      const struct log_about *about, const char *fmt, va_list ap)
{
    char text[FL_LOG_LINE_MAX - 128];
    bool pass = true;

    if (log == NULL || log->sink == NULL || (int)level > atomic_load(&log->level)) {
        return;
    }
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    (void)fl_str_clean(text);
    if (log->limit != NULL && about->peer != NULL) {
        uint64_t now_ms = fl_clock_ms();

        (void)pthread_mutex_lock(&log->limit->lock);
        log_left_out_lines(log, now_ms);
        pass = fl_log_gate_pass(&log->limit->gate, now_ms, about->peer, about->reason, text);
        (void)pthread_mutex_unlock(&log->limit->lock);
    }
    if (pass) {
        log_pass(log, level, component, text, about->note);
    }
}

void fl_log_peer(const struct fl_log *log, enum fl_log_level level, const char *component,
                 const char *peer, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_about(log, level, component, &(struct log_about){.peer = peer, .reason = fmt}, fmt, ap);
    va_end(ap);
}

void fl_log_reason(const struct fl_log *log, enum fl_log_level level, const char *component,
                   const char *peer, const char *reason, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_about(log, level, component, &(struct log_about){.peer = peer, .reason = reason}, fmt, ap);
    va_end(ap);
}

void fl_log_noted(const struct fl_log *log, enum fl_log_level level, const char *component,
                  const char *peer, const struct fl_log_note *note, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_about(log, level, component, &(struct log_about){.peer = peer, .reason = fmt, .note = note},
              fmt, ap);
    va_end(ap);
}

void fl_log_left_out(const struct fl_log *log, bool all)
{
    if (log == NULL || log->sink == NULL || log->limit == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&log->limit->lock);
    log_left_out_lines(log, all ? UINT64_MAX : fl_clock_ms());
    (void)pthread_mutex_unlock(&log->limit->lock);
}

uint64_t fl_log_n_left_out(const struct fl_log *log)
{
    uint64_t n = 0;

    if (log != NULL && log->limit != NULL) {
        (void)pthread_mutex_lock(&log->limit->lock);
        n = log->limit->gate.left_out;
        (void)pthread_mutex_unlock(&log->limit->lock);
    }
    return n;
}

const char *fl_log_quote(char *out, size_t size, const char *text, size_t len)
{
    size_t i;
    size_t n = 0;

    FL_REQUIRE(size >= 8);
    out[n++] = '\'';
    for (i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        int plain = c >= 0x20 && c < 0x7f && c != '\'' && c != '\\';

        /* Room for this byte, the dots, the closing quote and the NUL. */
        if (n + (plain ? 1u : 4u) + 5 > size) {
            (void)memcpy(out + n, "...", 3);
            n += 3;
            break;
        }
        if (plain) {
            out[n++] = (char)c;
        } else {
            n += (size_t)snprintf(out + n, size - n, "\\x%02x", c);
        }
    }
    out[n++] = '\'';
    out[n] = '\0';
    return out;
}
