#ifndef FL_CLIENTD_EXIT_CODES_H
#define FL_CLIENTD_EXIT_CODES_H

/* Exit codes of fl-clientd, documented in --help and the README. */
enum fl_client_exit {
    FL_EXIT_OK = 0,
    FL_EXIT_FAILURE = 1, /* a failure while running */
    FL_EXIT_USAGE = 2,   /* command line */
    FL_EXIT_CONFIG = 3,  /* configuration file */
    FL_EXIT_STATE = 4,   /* state folder */
    FL_EXIT_DATA = 5,    /* data set */
    FL_EXIT_REFUSED = 7  /* the server refused this client permanently */
};

#endif
