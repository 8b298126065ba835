#ifndef FL_CORE_SETTINGS_H
#define FL_CORE_SETTINGS_H

/*
 * The settings of a federation as named texts: what the state folder stores of its configuration,
 * and what follows when the next start finds other settings (docs/operating.md).
 *
 * Pure: no clock, no I/O. Ownership: a list owns its texts.
 */

#include "libfl/base/buf.h"
#include "libfl/strategy/strategy.h"

enum fl_setting_kind {
    /* Rates, deadlines, numbers of clients. A change is logged, and has no other effect. */
    FL_SETTING_FIGURE = 1,
    /* The meaning of an update: after a change nothing of the open attempt counts. */
    FL_SETTING_UPDATE,
    /*
     * Derived from the components, for state that outlives a round; not shown to users. After a
     * change client state and the server's part of it restart together (KEPT), data summaries are
     * requested again (SUMMARY), selection scores restart (SCORE).
     */
    FL_SETTING_KEPT,
    FL_SETTING_SUMMARY,
    FL_SETTING_SCORE
};

struct fl_setting {
    enum fl_setting_kind kind;
    char *name, *value;
};

/* In order of insertion. All zero: an empty list. */
struct fl_settings {
    struct fl_setting *list;
    size_t n, cap;
};

FL_MUST_CHECK int fl_settings_add(struct fl_settings *s, enum fl_setting_kind kind,
                                  const char *name, const char *value);
/* As fl_settings_add() with the text in `text`, which is freed, unless writing it failed: `rv`. */
FL_MUST_CHECK int fl_settings_add_text(struct fl_settings *s, enum fl_setting_kind kind,
                                       const char *name, struct fl_buf *text, int rv);
/* All components, and what is derived from them. */
FL_MUST_CHECK int fl_settings_add_strategy(struct fl_settings *s,
                                           const struct fl_strategy *strategy);
/* One option row as "PREFIX.NAME", or "NAME" with an empty prefix. */
FL_MUST_CHECK int fl_settings_add_option(struct fl_settings *s, enum fl_setting_kind kind,
                                         const char *prefix, const struct fl_options *options,
                                         const struct fl_opt_spec *spec);
void fl_settings_done(struct fl_settings *s);
/* The value, or NULL. */
const char *fl_settings_find(const struct fl_settings *s, const char *name);
/* The compatibility digest: SHA-256 over the digest of the layout and all settings of kind
   UPDATE. */
FL_MUST_CHECK int fl_settings_meaning(const struct fl_settings *s,
                                      const uint8_t layout[FL_DIGEST_SIZE],
                                      uint8_t out[FL_DIGEST_SIZE]);

/* One difference that is logged. Texts are borrowed from the two lists; "": absent. */
struct fl_settings_difference {
    const char *name, *before, *after;
    bool update; /* an update has another meaning */
};

struct fl_settings_verdict {
    bool update, kept, summary, score; /* something of that kind changed */
    bool rewrite; /* the stored list has to be replaced, if only because of other names */
    struct fl_settings_difference *list; /* owned */
    size_t n;
};

/* FL_ENOMEM. */
FL_MUST_CHECK int fl_settings_compare(const struct fl_settings *before,
                                      const struct fl_settings *after,
                                      struct fl_settings_verdict *ret);
void fl_settings_verdict_done(struct fl_settings_verdict *verdict);

#endif
