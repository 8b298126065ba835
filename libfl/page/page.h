#ifndef FL_PAGE_PAGE_H
#define FL_PAGE_PAGE_H

/*
 * The status page of a federation, and the report of a simulation, as HTML documents: complete
 * without the script, self-contained (style sheet and script are in the page, and the
 * content-security policy allows only these two by their hashes), everything escaped.
 *
 * The input are the messages that flctl shows (libfl/wire/wire_admin.h), and what only a simulation
 * has: the phases of rounds in its network. Pointers are borrowed for the call.
 * What is NULL or empty is left out, or named as missing.
 *
 * Functions append a document to `out`. FL_ENOMEM, FL_ELIMIT (the buffer's own limit).
 * Threading: pure functions.
 */

#include "libfl/wire/wire_admin.h"

/* Rounds of the table of rounds, and lines of the list of events. */
#define FL_PAGE_ROUNDS 50
#define FL_PAGE_EVENTS 50
/* Clients on the overview that is served, and on one page of /clients. */
#define FL_PAGE_MEMBERS 25
#define FL_PAGE_CLIENTS 200
/* Clients of a report: all of them are in the file. */
#define FL_PAGE_REPORT_CLIENTS 10000
/* Participations of a point of a report: the newest are in the file. */
#define FL_PAGE_REPORT_PARTS 2000
/* Points of a report with views of their own; all are in its table. */
#define FL_PAGE_REPORT_POINTS 12

/* Durations of the phases of rounds, in microseconds. */
struct fl_page_phases {
    const char *const *names;
    size_t n;
    const double *us; /* [phase][round]: n arrays with a value for each round of the page */
};

/* A client in an attempt at a round. */
/* An evaluation on a client's test data. */
struct fl_page_eval {
    double accuracy; /* FL_SHARE_UNKNOWN: none (libfl/figures/share.h) */
    double loss;
};

struct fl_page_part {
    const char *client;
    uint64_t round;
    uint32_t attempt;
    const char *state; /* "accepted", "late" … */
    const char *asked; /* its upload mask, a digit for each layer, "0110"; NULL: it got none */
    uint64_t bytes_up, bytes_down;
    double train_loss;   /* NAN: unknown */
    const char *remark;  /* why it was left out; "": it was not */
    const char *aborted; /* why the attempt was aborted; NULL or "": it was committed */
    struct fl_page_eval received, personal; /* of the model that it received, and of its own */
    const char *metrics;                    /* of these, "received/auc=0.9"; NULL or "": none */
    /* Weights in its personalized model: of the models of the accepted clients of the round, by
       name, of the first n_mixing of them (FedMCSA); or the scores that its update gives to theirs
       (IGFL with self attention). */
    const float *mixing;
    size_t n_mixing;  /* 0: it has none */
    double attention; /* weight of its update; 0: no attention */
};

struct fl_page_event {
    uint64_t at_ms;
    const char *text;
};

struct fl_page_overview {
    const struct fl_wire_status *status; /* its `why` is the sentence at the top */
    const struct fl_wire_why *why;       /* the names of missing clients; may be NULL */
    const struct fl_wire_round *rounds;  /* oldest first */
    size_t n_rounds;
    const struct fl_wire_client *clients;
    size_t n_clients;
    const struct fl_page_phases *phases; /* NULL: as the figures of the rounds have them */
    /* Of the last rounds, newest first: the grid of clients and layers and the mixing weights; in a
       file also their table. 0: not recorded. */
    const struct fl_page_part *parts;
    size_t n_parts;
    const char *const *layers; /* names of the digits of their masks */
    size_t n_layers;
    /* Beside changed settings, errors and quarantines, which follow from the messages. */
    const struct fl_page_event *events;
    size_t n_events;
    uint64_t now_ms; /* since 1970; simulated: since the start of the trial, as all times */
    bool simulated;  /* part of a file: no links to other pages, no commands */
};

/* The page at "/". */
FL_MUST_CHECK int fl_page_write_overview(const struct fl_page_overview *overview,
                                         struct fl_buf *out);

/* --- all clients, paged --- */

/* What the query of the URL asks for. */
struct fl_page_query {
    unsigned column;  /* that the table is sorted by: enum in clients_page.c */
    bool down;        /* largest first */
    char filter[128]; /* clients whose name, state, remarks or labels contain it; "": all */
    uint64_t page;    /* from 0; one behind the last is the last */
};

/* The names of its parameters, NULL terminated: sort, down, filter, page. */
extern const char *const fl_page_query_keys[];
/* Take one of them, unescaped; what is malformed is ignored. */
void fl_page_query_set(struct fl_page_query *query, const char *key, const char *value);
/* The page at "/clients": FL_PAGE_CLIENTS of the clients of the overview, sorted and filtered by
   links and a form, so that it needs no script. */
FL_MUST_CHECK int fl_page_clients(const struct fl_page_overview *overview,
                                  const struct fl_page_query *query, struct fl_buf *out);

/* --- one client, one round --- */

struct fl_page_detail {
    const struct fl_wire_status *status;
    const struct fl_wire_client *client; /* of fl_page_client() */
    const struct fl_wire_round *round;   /* of fl_page_round() */
    const struct fl_wire_round *next;    /* the round behind it, which knows its commit; or NULL */
    const struct fl_page_part *parts;    /* newest first, or by client */
    size_t n_parts;
    uint64_t older; /* there are further ones: the query before=N of the page has them; 0: none */
    const char *const *layers; /* names of the digits of the masks */
    size_t n_layers;
    uint64_t now_ms;
};

/* The page at "/clients/NAME". */
FL_MUST_CHECK int fl_page_client(const struct fl_page_detail *detail, struct fl_buf *out);
/* The page at "/rounds/N". */
FL_MUST_CHECK int fl_page_round(const struct fl_page_detail *detail, struct fl_buf *out);

/* --- report of a simulation --- */

struct fl_page_point {
    const char *label;
    const char *end; /* "done", "diverged in round 7"; of its trials */
    size_t n_trials, n_finished;
    uint64_t rounds;       /* those of the longest trial */
    double accuracy, best; /* means over the trials; NAN: unknown */
    double uplink_bytes, wall_us;
    const double *accuracies; /* [n of the report]: means over trials after each round */
    const double *losses;
    uint64_t seed;                       /* of the trial that is shown below */
    const struct fl_page_overview *view; /* of that trial; NULL: none */
};

struct fl_page_report {
    const char *name;     /* of the experiment */
    const char *sentence; /* what was run and how it ended */
    const char *quality;  /* what accuracies are of: "accuracy of the global model" */
    const char *version;  /* of the program */
    const struct fl_page_point *points;
    size_t n_points;
    const uint64_t *rounds; /* [n] 1, 2 … */
    size_t n;
};

FL_MUST_CHECK int fl_page_report(const struct fl_page_report *report, struct fl_buf *out);

/* --- for the HTTP header --- */

#define FL_PAGE_POLICY 512
/* The content-security policy of all pages; each has it as <meta> too. Returns `out`. */
const char *fl_page_policy(char out[FL_PAGE_POLICY]);

#endif
