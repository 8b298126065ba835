#ifndef FL_CLIENTD_CENTRAL_H
#define FL_CLIENTD_CENTRAL_H

/*
 * The central settings of this client: receives them from the server, stores them and carries out
 * what its owner accepts (`accept`), once the client takes part in no round. The next Hello tells
 * the server.
 *
 * Threading: the loop; the training thread writes the file.
 */

#include "client/conf/client_conf.h"
#include "client/core/central_rules.h"
#include "client/daemon/availability.h"
#include "client/daemon/jobs.h"
#include "libfl/wire/messages.h"

/* Size of the text about them. */
#define FL_CENTRAL_LINE 512

struct fl_central_settings;

/*
 * Reads those that are on disk; damaged ones are logged and sent again by the server. Borrows
 * `conf`, `jobs`, `availability`, whose hours it sets, and `limits`, which it sets to those of the
 * configuration and of the server together. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_central_open(const struct fl_client_conf *conf, const struct fl_jobs *jobs,
                                  struct fl_availability *availability,
                                  struct fl_device_limits *limits,
                                  struct fl_central_settings **ret);
/* After the loop was freed; NULL is allowed. */
void fl_central_close(struct fl_central_settings *central);

/* From the server; takes the contents of `settings`. They wait for fl_central_apply(). */
void fl_central_receive(struct fl_central_settings *central, struct fl_wire_central *settings);
bool fl_central_waiting(const struct fl_central_settings *central);
/* Stores and carries out what was received. Call it outside of rounds. */
void fl_central_apply(struct fl_central_settings *central);

/*
 * Fills in the labels and what the server is to know; `labels` has room for 2 * FL_WIRE_MAX_PAIRS.
 * Borrowed until the next fl_central_apply().
 */
void fl_central_describe(const struct fl_central_settings *central, struct fl_pair *labels,
                         struct fl_wire_hello *hello);
/* "set by the server: labels site=lab-7; hours 22:00-06:00"; "": nothing. Returns `out`. */
const char *fl_central_line(const struct fl_central_settings *central, char out[FL_CENTRAL_LINE]);

#endif
