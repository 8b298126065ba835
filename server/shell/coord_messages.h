#ifndef FL_SERVER_SHELL_COORD_MESSAGES_H
#define FL_SERVER_SHELL_COORD_MESSAGES_H

/*
 * Messages of fl.v1.Federation and the coordinator: an event of a client becomes an event of the
 * core, an effect becomes a command to a client. fl-serverd, fl-sim and tests/sim use the same
 * functions, so a field of a message meets the core here and nowhere else. Bytes are encoded by the
 * caller.
 *
 * Ownership: what is returned borrows from the arguments. Threading: pure functions; `shell` is
 * only read.
 */

#include "libfl/wire/messages.h"
#include "server/shell/coord_shell.h"

/*
 * The event of the core for a message of `client`; of a Hello `client` is ignored, and
 * `summary_missing` is the caller's. False: the coordinator has no event for it (a heartbeat, a
 * piece of a data summary).
 */
bool fl_coord_event_of(const struct fl_wire_event *message, uint32_t client, struct fl_event *ret);
/*
 * The command for an effect that sends one to clients (FL_EFF_TASK to FL_EFF_DRAIN_CLIENTS), except
 * the payloads of a Task, which depend on what is served (fl_payloads_list()).
 */
struct fl_wire_command fl_coord_command_of(const struct fl_coord_shell *shell,
                                           const struct fl_effect *e);

#endif
