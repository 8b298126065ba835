#ifndef FL_CLIENTD_UNIT_H
#define FL_CLIENTD_UNIT_H

/* The systemd service of a client, for joining; systemctl(1) does the work. */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"

/* The state folder of fl-clientd.service; fl-clientd@NAME.service appends "-NAME". */
#define FL_UNIT_STATE_DIR "/var/lib/fl-clientd"

/*
 * The unit that runs with this configuration and this state folder: fl-clientd for client.yaml,
 * fl-clientd@NAME for client-NAME.yaml, both below /etc/fl. False: none.
 */
bool fl_unit_name(const char *config, const char *state_dir, char *out, size_t size);
/* The state folder of the unit that runs with this configuration. FL_ELIMIT: path too long. */
FL_MUST_CHECK int fl_unit_state_dir(const char *config, char *out, size_t size);
/* Does this host run systemd, and may this process control it? */
bool fl_unit_can_start(void);
/*
 * Start the unit now and at each boot. A running unit is left alone: it loads a new certificate
 * automatically. The error names the command that failed.
 */
FL_MUST_CHECK int fl_unit_start(const char *unit, struct fl_err *err);

#endif
