#ifndef FL_CLIENTD_ENROL_COMMAND_H
#define FL_CLIENTD_ENROL_COMMAND_H

/*
 * fl-clientd --join [CONFIG]: an operator runs it once on the host of a client. It gets the
 * certificate, writes a first configuration when there is none, and starts the service or prints
 * the next step.
 */

#include <stdbool.h>

#define FL_ENROL_CONFIG "/etc/fl/client.yaml"

struct fl_enrol_options {
    const char *config;     /* NULL: FL_ENROL_CONFIG */
    const char *invitation; /* file; NULL: the systemd credential, else standard input */
    /* Of the first configuration; NULL: not given. */
    const char *name, *data, *state_dir, *proxy, *proxy_credentials;
    bool no_start; /* do not start the service */
};

/* Returns the exit code; errors are printed on standard error. */
int fl_enrol_command(const struct fl_enrol_options *options);

#endif
