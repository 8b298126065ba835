#ifndef FL_SERVER_RUNTIME_CENTRAL_SETTINGS_H
#define FL_SERVER_RUNTIME_CENTRAL_SETTINGS_H

/*
 * Central settings: the labels, hours and limits that operators set for clients (flctl clients
 * label, clients schedule, clients limit), by the client's name, and what each client answered to
 * them. In memory; the caller stores them. A client without any has no entry. Threading: one
 * thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/str.h"
#include "libfl/wire/wire_admin.h"

/* Size of what a client refuses; longer texts are cut. */
#define FL_CENTRAL_REFUSED 256
/* Size of the text about the settings of a client. */
#define FL_CENTRAL_TEXT FL_WIRE_MAX_TEXT

struct fl_central_entry {
    char name[FL_NAME_MAX];
    struct fl_wire_central settings;  /* owned */
    uint64_t answered;                /* the revision that the client has; 0: none */
    char refused[FL_CENTRAL_REFUSED]; /* what it does not accept of that; "": nothing */
};

struct fl_central {
    struct fl_central_entry *list; /* [n], by name */
    size_t n, cap;
    uint64_t newest; /* highest revision so far */
};

/* How a client can be reached, for the text. */
enum fl_central_reach { FL_CENTRAL_DISCONNECTED, FL_CENTRAL_CONNECTED, FL_CENTRAL_UNAWARE };

/* NULL: none. Valid until the next change. */
struct fl_central_entry *fl_central_find(const struct fl_central *central, const char *name);
/* Replaces those of the name; takes `settings` on success. FL_ENOMEM. */
FL_MUST_CHECK int fl_central_put(struct fl_central *central, const char *name,
                                 struct fl_wire_central *settings);
void fl_central_drop(struct fl_central *central, const char *name);
void fl_central_done(struct fl_central *central);

/*
 * The settings of a name after a change, with a new revision: appended to `out` as they are stored
 * and sent; nothing when none are left. `wall_ms` makes revisions of a restored database differ.
 * FL_EINVAL: too many or too long labels, hours that are none; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_central_label(const struct fl_central *central,
                                   const struct fl_wire_label_client *change, uint64_t wall_ms,
                                   struct fl_buf *out, struct fl_err *err);
FL_MUST_CHECK int fl_central_schedule(const struct fl_central *central,
                                      const struct fl_wire_schedule_client *change,
                                      uint64_t wall_ms, struct fl_buf *out, struct fl_err *err);
/* FL_EINVAL also: a limit of another name, or a value that is none. */
FL_MUST_CHECK int fl_central_limit(const struct fl_central *central,
                                   const struct fl_wire_limit_client *change, uint64_t wall_ms,
                                   struct fl_buf *out, struct fl_err *err);

/* "labels site=lab-7; hours 22:00-06:00 (in force)"; "" for NULL. Returns `out`. */
const char *fl_central_text(const struct fl_central_entry *entry, enum fl_central_reach reach,
                            char out[FL_CENTRAL_TEXT]);

#endif
