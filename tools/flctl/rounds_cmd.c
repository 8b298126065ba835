/*
 * `flctl rounds`: its options, its lines of CSV, and --follow, which asks the server again and
 * again. Main thread. print.c prints the other forms.
 */

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "libfl/json/json.h"
#include "tools/flctl/look.h"

#define ROUNDS_LAST   20
#define ROUNDS_ALL    0
#define ROUNDS_ASK_MS 1000

int fl_ctl_rounds_options(struct fl_ctl_args *a)
{
    if (!a->has_last) {
        a->last = ROUNDS_LAST;
    }
    if (a->format != NULL) {
        a->out.rounds = strcmp(a->format, "csv") == 0     ? FL_CTL_CSV
                        : strcmp(a->format, "jsonl") == 0 ? FL_CTL_JSONL
                                                          : FL_CTL_LIST;
        if (a->out.rounds == FL_CTL_LIST) {
            return fl_ctl_complain(a, FL_CTL_USAGE, "--format: expected csv or jsonl, found '%s'",
                                   a->format);
        }
        if (a->out.json) {
            return fl_ctl_complain(a, FL_CTL_USAGE, "expected --json or --format, found both");
        }
    }
    if (a->follow && (a->out.json || a->out.abandoned)) {
        return fl_ctl_complain(a, FL_CTL_USAGE,
                               "--follow is for committed rounds as text, or with --format");
    }
    return -1;
}

/* --- CSV --- */

void fl_ctl_rounds_csv(const struct fl_ctl_out *out, const struct fl_wire_round *round)
{
    char text[FL_JSON_EXACT];
    size_t i;

    for (i = 0; out->n == 0 && i < fl_round_rows.n; i++) {
        (void)printf("%s%s", i > 0 ? "," : "", fl_figure_key(&fl_round_rows.rows[i]));
    }
    if (out->n == 0) {
        (void)printf("%s,metrics\n", out->abandoned ? ",generation,abandoned_ms" : "");
    }
    for (i = 0; i < fl_round_rows.n; i++) {
        const struct fl_figure *f = &fl_round_rows.rows[i];

        (void)printf("%s", i > 0 ? "," : "");
        if (!fl_figure_known(&fl_round_rows, f, &round->figures)) {
            continue; /* An empty field: not known. */
        }
        if (f->type == FL_FIGURE_F64) {
            (void)printf("%s", fl_json_exact(fl_figure_real(f, &round->figures), text));
        } else {
            (void)printf("%" PRIu64, fl_figure_whole(f, &round->figures));
        }
    }
    if (out->abandoned) {
        (void)printf(",%" PRIu64 ",%" PRIu64, round->generation, round->abandoned_ms);
    }
    /* No character of it needs quotes. */
    (void)printf(",%s\n", fl_str_clean(round->metrics));
}

/* --- --follow --- */

/* The newest round that was printed. */
struct follow {
    bool any;
    uint64_t round, ended_ms;
};

/*
 * Index of the first round that was not printed. After a rollback the printed one is not among
 * them, and those that follow were committed later.
 */
static size_t follow_first(const struct follow *f, const struct fl_ctl_look *look)
{
    size_t i;

    for (i = look->n_rounds; f->any && i > 0; i--) {
        const struct fl_round_rec *r = &look->rounds[i - 1].figures;

        if (r->round == f->round && r->ended_ms == f->ended_ms) {
            return i;
        }
    }
    for (i = 0; f->any && i < look->n_rounds; i++) {
        if (look->rounds[i].figures.ended_ms > f->ended_ms) {
            return i;
        }
    }
    return f->any ? look->n_rounds : 0;
}

static int follow_ask(struct fl_ctl_args *a, struct follow *f, struct fl_err *err)
{
    struct fl_ctl_look look = {0};
    uint32_t last = f->any && a->last != ROUNDS_ALL ? ROUNDS_LAST : (uint32_t)a->last;
    size_t i;
    int code = fl_ctl_look_rounds(a, last, &look, err);

    if (code == FL_CTL_OK && f->any && last != ROUNDS_ALL && look.n_rounds == last &&
        follow_first(f, &look) == 0)
    {
        fl_ctl_look_done(&look); /* There may be older ones that were not printed. */
        code = fl_ctl_look_rounds(a, ROUNDS_ALL, &look, err);
    }
    for (i = follow_first(f, &look); code == FL_CTL_OK && i < look.n_rounds; i++) {
        const struct fl_round_rec *r = &look.rounds[i].figures;

        fl_ctl_print_round(&a->out, &look.rounds[i]);
        *f = (struct follow){.any = true, .round = r->round, .ended_ms = r->ended_ms};
    }
    fl_ctl_look_done(&look);
    return code;
}

/* All rounds are done: none follows. */
static int follow_done(struct fl_ctl_args *a, bool *ret_done, struct fl_err *err)
{
    struct fl_ctl_look look = {0};
    int code = fl_ctl_look_status(a, &look, err);

    *ret_done = code == FL_CTL_OK && look.status.rounds_total != 0 &&
                look.status.rounds_committed >= look.status.rounds_total;
    fl_ctl_look_done(&look);
    return code;
}

/* A server that restarts is waited for; an answer that cannot be used ends it. */
int fl_ctl_rounds_follow(struct fl_ctl_args *a)
{
    struct follow f = {0};
    bool begun = false;
    bool away = false;

    for (;;) {
        struct fl_err err = {0};
        bool done = false;
        int code = follow_done(a, &done, &err);

        if (code == FL_CTL_OK) {
            code = follow_ask(a, &f, &err);
        }
        if (fflush(stdout) != 0) {
            return FL_CTL_FAILED;
        }
        if (code != FL_CTL_OK && (!begun || code == FL_CTL_USAGE)) {
            return fl_ctl_complain(a, code, "%s", err.msg);
        }
        if (code != FL_CTL_OK && !away) {
            (void)fl_ctl_complain(a, code, "%s; trying again", err.msg);
        }
        if (code == FL_CTL_OK && done) {
            return FL_CTL_OK;
        }
        away = code != FL_CTL_OK;
        begun = true;
        (void)poll(NULL, 0, ROUNDS_ASK_MS);
    }
}
