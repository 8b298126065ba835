#ifndef FL_BASE_LOG_OUT_H
#define FL_BASE_LOG_OUT_H

/*
 * Where the lines of a daemon go: a file descriptor, as text or as JSON.
 *
 *   text      2026-01-31T12:00:00.000Z notice  server: listening on 'a:1' port=1
 *   journal   <5>server: listening on 'a:1' port=1
 *   json      {"time":"…","level":"notice","component":"server","message":"listening on
 * 'a:1'","port":1}
 *
 * A line is one event and written with one write(2). The journal has times of its own and takes the
 * priority from "<n>", in front of JSON too.
 *
 * Threading: fl_log_out_sink() from any thread; the format may change meanwhile.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "libfl/base/log.h"

enum fl_log_format { FL_LOG_TEXT, FL_LOG_JSON };

/* The words for them; NULL behind the last. */
extern const char *const fl_log_formats[];

struct fl_log_out {
    int fd;
    bool journal;
    atomic_int format; /* enum fl_log_format */
};

/* Is `fd` the stream that the journal gave to this service ($JOURNAL_STREAM)? */
bool fl_log_is_journal(int fd);
/* Text to `fd`, which stays the caller's. */
void fl_log_out_init(struct fl_log_out *out, int fd);
/* A sink; `ctx` is a struct fl_log_out. */
void fl_log_out_sink(void *ctx, enum fl_log_level level, const char *component, const char *text);
/*
 * What a program says of itself where there is no log yet, or none at all: "program: text", for the
 * journal as an error.
 */
void fl_log_out_complain(const struct fl_log_out *out, const char *program, const char *text);

/*
 * One line of JSON without its end into `out`: what stands in `text` behind its last word that is
 * no key=value becomes members of their own, numbers as numbers. `text` is clean (fl_str_clean()).
 * Cut at a member or a character when it does not fit; size > 256. Returns the length.
 */
size_t fl_log_json(char *out, size_t size, const char *time, enum fl_log_level level,
                   const char *component, const char *text);

#endif
