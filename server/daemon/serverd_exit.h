#ifndef FL_SERVERD_EXIT_CODES_H
#define FL_SERVERD_EXIT_CODES_H

/* Exit codes of fl-serverd, documented in --help and the README. */
enum fl_server_exit {
    FL_EXIT_OK = 0,
    FL_EXIT_FAILURE = 1, /* something broke while running */
    FL_EXIT_USAGE = 2,   /* command line */
    FL_EXIT_CONFIG = 3,  /* configuration file */
    FL_EXIT_STATE = 4,   /* state folder or database */
    FL_EXIT_DATA = 5,    /* data set or model file */
    FL_EXIT_LISTEN = 6,  /* address */
    FL_EXIT_IDENTITY = 8 /* certificates and keys; 7 is used by fl-clientd */
};

#endif
