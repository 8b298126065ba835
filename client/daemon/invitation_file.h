#ifndef FL_CLIENTD_INVITATION_H
#define FL_CLIENTD_INVITATION_H

/*
 * Where an invitation comes from. Who holds the line may join in this client's place, so it is
 * never taken from the arguments, which every user of the machine can read, and is in memory for no
 * longer than needed.
 */

#include <stdbool.h>

#include "libfl/pki/invitation.h"

/*
 * Does an argument look like an invitation? Such are overwritten in place; true when there was one.
 */
bool fl_invitation_in_arguments(int argc, char **argv);

/* The credential `invitation` that systemd hands over: its path, or NULL when there is none. */
const char *fl_invitation_credential(char *out, size_t size);

/*
 * From `path`, or from standard input when it is NULL; a terminal is asked, and shows nothing of
 * it. FL_EFORMAT: it is none. Wipe it with fl_invite_done().
 */
FL_MUST_CHECK int fl_invitation_read(const char *path, struct fl_invite *ret, struct fl_err *err);

#endif
