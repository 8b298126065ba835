#ifndef FL_CLIENTD_UNIT_H
#define FL_CLIENTD_UNIT_H

/* The service of a client on a host with systemd, for who joins it: systemctl(1) does the work. */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"

/* The folder of fl-clientd.service; that of fl-clientd@NAME.service has "-NAME" behind it. */
#define FL_UNIT_STATE_DIR "/var/lib/fl-clientd"

/*
 * Which service runs with this configuration and this state folder: client.yaml is of fl-clientd,
 * client-NAME.yaml of fl-clientd@NAME, below /etc/fl. False: none.
 */
bool fl_unit_name(const char *config, const char *state_dir, char *out, size_t size);
/* The state folder of the service that runs with this configuration. FL_ELIMIT. */
FL_MUST_CHECK int fl_unit_state_dir(const char *config, char *out, size_t size);
/* Is systemd in charge here, and may this process command it? */
bool fl_unit_can_start(void);
/*
 * Started now and at each boot. One that runs goes on: it takes up a new certificate by itself. The
 * error names the command that failed.
 */
FL_MUST_CHECK int fl_unit_start(const char *unit, struct fl_err *err);

#endif
