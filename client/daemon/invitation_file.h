#ifndef FL_CLIENTD_INVITATION_H
#define FL_CLIENTD_INVITATION_H

/*
 * Sources of an invitation. Its holder may join in this client's place, so it is never accepted as
 * a command line argument, which every user of the machine can read, and stays in memory no longer
 * than needed.
 */

#include <stdbool.h>

#include "libfl/pki/invitation.h"

/*
 * Does an argument look like an invitation? Such arguments are overwritten in place; true: there
 * was one.
 */
bool fl_invitation_in_arguments(int argc, char **argv);

/* The path of the systemd credential `invitation`, in `out`; NULL: there is none. */
const char *fl_invitation_credential(char *out, size_t size);

/*
 * Read from `path`; NULL: standard input, with a prompt and without echo on a terminal. FL_EFORMAT:
 * not an invitation. Wipe `ret` with fl_invite_done().
 */
FL_MUST_CHECK int fl_invitation_read(const char *path, struct fl_invite *ret, struct fl_err *err);

#endif
