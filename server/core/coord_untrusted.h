#ifndef FL_CORE_COORD_UNTRUSTED_H
#define FL_CORE_COORD_UNTRUSTED_H

/*
 * What bounds a client in the coordinator (docs/security.md#quarantine): norms of updates, its
 * share of what is drawn and asked, claims that are compared with uploads, and quarantine. Of the
 * coord_*.c files only, as coord_impl.h.
 */

#include "server/core/coord_impl.h"

/* --- coord_norm.c --- */

/* Leave out the accepted updates that are larger than norm_cap times the median. */
void fl__coord_cap_norms(struct fl_coord *c);
void fl__coord_count_norms(const struct fl_coord *c, struct fl_round_rec *rec);
/* "; client 'x' deviates most, ...", or "" when none is known to. */
const char *fl__coord_deviant_text(struct fl_coord *c);

/* --- coord_share.c: clients with a share that round.share_cap lowered --- */

/* The draw from the candidates in clients.index; returns how many it lowered. */
uint32_t fl__share_note_draws(struct fl_coord *c, const struct fl_select_input *in);
/* What a plan of the participants chosen[] needs to know; and what it did. */
void fl__share_plan(struct fl_coord *c, const uint32_t *chosen, struct fl_upload_input *in);
void fl__share_note_layers(struct fl_coord *c, const uint32_t *chosen,
                           const struct fl_upload_input *in);
/* Before layers are given to other participants, which fl__share_compare() then ranks: above 0 if
   `a` is asked before `b`; 0: their divergences decide. */
void fl__share_backfill(struct fl_coord *c);
int fl__share_compare(const struct fl_coord *c, size_t a, size_t b);
/* left[n_listed], or NULL: fl_agg_job.influence. */
void fl__share_note_weights(struct fl_coord *c, const double *left);
/* The figures of the round and of its clients, and their credit of layers, once for each commit. */
void fl__share_count(struct fl_coord *c);
/* Append the clients of the newest round. */
void fl__share_why(const struct fl_coord *c, char *out, size_t size);

/* --- coord_claim.c --- */

/* Reported divergences are compared with uploads: they matter, and no residual hides them. */
bool fl__claims_compared(const struct fl_strategy *s);
/* Keep the norms of the upload, to compare them with the report. */
void fl__claim_take(struct fl_coord *c, size_t i, const struct fl_norms *norms);
/* A repeated report of a participant whose first one counts. */
void fl__claim_repeated(struct fl_coord *c, size_t i, const struct fl_event *ev);
/* Why its report and upload contradict each other; NULL: they do not, or one is missing. */
const char *fl__claim_bad(struct fl_coord *c, size_t i);

/* --- coord_quarantine.c: clients that are not selected for what they did --- */

/* The rules of FL_COORD_CLIENT_COMMANDS. */
#define FL__COORD_CLIENT_RULE(event, rule) \
    void fl__coord_##rule(struct fl_coord *c, const char *name, const char *reason);
FL_COORD_CLIENT_COMMANDS(FL__COORD_CLIENT_RULE)
#undef FL__COORD_CLIENT_RULE
/* Participant `i`, which is rejected, did this; `found`: what was claimed and what was found. */
void fl__coord_offence(struct fl_coord *c, size_t i, enum fl_offence_kind kind, const char *found);
/* Release the clients whose quarantine has lasted for quarantine_ms. */
void fl__quarantine_age(struct fl_coord *c);
/* When the next one is; FL__NEVER: none. */
uint64_t fl__quarantine_due(const struct fl_coord *c);
/* Persist the quarantines that changed. */
void fl__quarantine_write(struct fl_coord *c);
bool fl__quarantine_durable(const struct fl_coord *c);
void fl__quarantine_persisted(struct fl_coord *c);
void fl__quarantine_failed(struct fl_coord *c, const char *reason);
/* After a restart: check and take the record's offences, and list who is quarantined. */
void fl__quarantine_resume_client(struct fl_client_rec *rec, uint64_t committed);
FL_MUST_CHECK int fl__quarantine_resume(struct fl_coord *c, const struct fl_coord_resume *resume);
/* A participant of the round that is resumed: what a quarantined client sent does not count. */
void fl__quarantine_resume_part(struct fl_coord *c, struct fl_participant_rec *part);
/* "; 2 clients are quarantined …", or nothing. */
void fl__quarantine_why(const struct fl_coord *c, char *out, size_t size);

#endif
