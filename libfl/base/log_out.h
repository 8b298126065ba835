#ifndef FL_BASE_LOG_OUT_H
#define FL_BASE_LOG_OUT_H

/*
 * Log output of a daemon: to a file descriptor, as text or as JSON.
 *
 *   text      2026-01-31T12:00:00.000Z notice  server: listening on 'a:1' port=1
 *   journal   <5>server: listening on 'a:1' port=1
 *   json      {"time":"…","level":"notice","component":"server","message":"listening on
 * 'a:1'","port":1}
 *
 * A line is one event and written with one write(2). The journal adds its own timestamps and takes
 * the priority from "<n>", which precedes JSON lines too. Text for the journal goes to its socket
 * instead, with fields, once fl_log_out_fields() was called and as long as the socket takes it:
 * FL_ROUND=3 and so on for the note and the key=value words of a line, MESSAGE_ID for its event.
 *
 * Threading: fl_log_out_sink() from any thread; the format may change meanwhile.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "libfl/base/log.h"
#include "libfl/base/log_journal.h"

enum fl_log_format { FL_LOG_TEXT, FL_LOG_JSON };

/* Names of the formats, NULL terminated. */
extern const char *const fl_log_formats[];

struct fl_log_out {
    int fd;
    bool journal;
    struct fl_log_journal socket; /* of the journal */
    atomic_int format;            /* enum fl_log_format */
};

/* Is `fd` the journal stream of this service ($JOURNAL_STREAM)? */
bool fl_log_is_journal(int fd);
/* Write text to `fd`, which the caller keeps owning. */
void fl_log_out_init(struct fl_log_out *out, int fd);
/* The socket of the journal. */
#define FL_LOG_JOURNAL "/run/systemd/journal/socket"
/*
 * When the output is the journal, send lines to its socket at `path`, for the life of the process;
 * without such a socket nothing changes. Call it when the start has succeeded: the journal finds
 * the unit of such a line by its process, which a failed start has ended by then, and a line of the
 * stream has its unit in any case. Again, or NULL: nothing. One thread; others may log.
 */
void fl_log_out_fields(struct fl_log_out *out, const char *path);
/* A sink; `ctx` is a struct fl_log_out. */
void fl_log_out_sink(void *ctx, enum fl_log_level level, const char *component, const char *text);
/* The same for lines with a note. */
void fl_log_out_note(void *ctx, enum fl_log_level level, const char *component, const char *text,
                     const struct fl_log_note *note);
/*
 * A message of a program that has no log, or none yet: "program: text", with priority error in the
 * journal.
 */
void fl_log_out_complain(const struct fl_log_out *out, const char *program, const char *text);

/*
 * Write one JSON object without a newline to `out`: the trailing key=value words of `text` become
 * members, numbers as numbers, and before them the note, NULL: none. `text` is clean
 * (fl_str_clean()). Truncated at a member or a character when it does not fit; size > 256. Returns
 * the length.
 */
size_t fl_log_json(char *out, size_t size, const char *time, enum fl_log_level level,
                   const char *component, const char *text, const struct fl_log_note *note);

#endif
