#ifndef FL_CORE_SETTINGS_H
#define FL_CORE_SETTINGS_H

/*
 * What a federation is run under, as named texts: what the state folder remembers of it, and
 * what follows when the next start finds others (docs/changing.md).
 *
 * Pure: no clock, no I/O. Ownership: a list owns its texts.
 */

#include "libfl/base/buf.h"
#include "libfl/strategy/strategy.h"

enum fl_setting_kind {
    /* How well or fast it goes: rates, deadlines, numbers of clients. Told, and that is all. */
    FL_SETTING_FIGURE = 1,
    /* What an update is: of the open attempt nothing counts after a change. */
    FL_SETTING_UPDATE,
    /*
     * What follows from the slots for what outlives a round, not shown to people:
     * what clients keep between rounds and the server's part of it begin anew together;
     * what clients told of their data is asked for again; the scores of the selection.
     */
    FL_SETTING_KEPT,
    FL_SETTING_OFFER,
    FL_SETTING_SCORE
};

struct fl_setting {
    enum fl_setting_kind kind;
    char *name, *value;
};

/* In the order of adding. All zero: an empty list. */
struct fl_settings {
    struct fl_setting *list;
    size_t n, cap;
};

FL_MUST_CHECK int fl_settings_add(struct fl_settings *s, enum fl_setting_kind kind,
                                  const char *name, const char *value);
/* All slots, and what follows from them. */
FL_MUST_CHECK int fl_settings_add_strategy(struct fl_settings *s,
                                           const struct fl_strategy *strategy);
/* One row of the options as "PREFIX.NAME", or "NAME" with an empty prefix. */
FL_MUST_CHECK int fl_settings_add_option(struct fl_settings *s, enum fl_setting_kind kind,
                                         const char *prefix, const struct fl_options *options,
                                         const struct fl_opt_spec *spec);
void fl_settings_done(struct fl_settings *s);
/* The value, or NULL. */
const char *fl_settings_find(const struct fl_settings *s, const char *name);
/* SHA-256 over the digest of the layout and all that says what an update is. */
FL_MUST_CHECK int fl_settings_meaning(const struct fl_settings *s,
                                      const uint8_t layout[FL_DIGEST_SIZE],
                                      uint8_t out[FL_DIGEST_SIZE]);

/* One difference that people are told of. Texts are borrowed from the two lists; "": not there. */
struct fl_settings_difference {
    const char *name, *before, *after;
    bool update; /* an update means something else */
};

struct fl_settings_verdict {
    bool update, kept, offer, score; /* something of that kind changed */
    bool rewrite; /* what is written down has to be replaced, if only by another list of names */
    struct fl_settings_difference *list; /* owned */
    size_t n;
};

/* FL_ENOMEM. */
FL_MUST_CHECK int fl_settings_compare(const struct fl_settings *before,
                                      const struct fl_settings *after,
                                      struct fl_settings_verdict *ret);
void fl_settings_verdict_done(struct fl_settings_verdict *verdict);

#endif
