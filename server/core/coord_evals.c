/* What the evaluations of each client found in a round, for the COMMIT effect. */
#include "libfl/figures/share.h"
#include "server/core/coord_impl.h"

static double evals_accuracy(const struct fl_coord *c, const struct fl_eval_rec *eval)
{
    return eval->samples == 0    ? FL_SHARE_UNKNOWN
           : c->conf.no_accuracy ? FL_SHARE_NONE
                                 : (double)eval->correct / (double)eval->samples;
}

static double evals_loss(const struct fl_eval_rec *eval)
{
    return eval->samples > 0 ? eval->loss_sum / (double)eval->samples : 0.0;
}

/* Append that of one client, unless it evaluated nothing. */
static void evals_add(struct fl_coord *c, size_t *n, uint32_t client, const char *name,
                      const struct fl_eval_rec *received, const struct fl_eval_rec *personal)
{
    if (name == NULL || (received->samples == 0 && personal->samples == 0)) {
        return;
    }
    c->clients.evals[(*n)++] = (struct fl_client_eval){
        .client = client,
        .name = name,
        .samples = received->samples > 0 ? received->samples : personal->samples,
        .received_accuracy = evals_accuracy(c, received),
        .received_loss = evals_loss(received),
        .personal_accuracy = evals_accuracy(c, personal),
        .personal_loss = evals_loss(personal),
        .received_metrics = received->metrics,
        .personal_metrics = personal->metrics};
}

/* The evaluation after the aggregation that participant i sent; NULL: none. */
static const struct fl__answer *evals_answer(const struct fl_coord *c, size_t i)
{
    uint32_t client = c->round.parts[i].client;
    uint32_t at = c->clients.live[client].answer;

    return at < c->round.n_answers && c->clients.answers[at].client == client
               ? &c->clients.answers[at]
               : NULL;
}

size_t fl__coord_list_evals(struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    size_t n = 0;
    size_t i;

    for (i = 0; i < r->n; i++) {
        const struct fl_participant_rec *part = &r->parts[i];
        const struct fl__answer *answer = evals_answer(c, i);

        if (r->evaluated && answer != NULL) {
            evals_add(c, &n, part->client, answer->name, &answer->result, &answer->adapted);
        } else if (!r->evaluated && fl__coord_responder(part)) {
            evals_add(c, &n, part->client, fl__coord_name(c, part->client), &part->received,
                      &part->trained);
        }
    }
    for (i = 0; i < r->n_answers; i++) {
        const struct fl__answer *answer = &c->clients.answers[i];
        uint32_t part = c->clients.live[answer->client].part;

        if (part == FL__NONE || part >= r->n || r->parts[part].client != answer->client) {
            evals_add(c, &n, answer->client, answer->name, &answer->result, &answer->adapted);
        }
    }
    return n;
}
