/*
 * Prints a page of ten thousand clients, for tests in a browser: page_sample KIND [QUERY]. With
 * PAGE_PLAIN=yes without hostile texts, for pictures.
 */
#include "tests/libfl/page/page_federation.h"

static char sentence[] =
    "round 12 is TRAINING: 8 of 10 clients are in, waiting 20.0 s more for: client-00000, "
    "client-00005";

static int sample(const char *kind, const char *text, struct federation *f, struct fl_buf *out)
{
    struct fl_page_query query;
    static double curve[ROUNDS];
    static uint64_t rounds[ROUNDS];
    struct fl_page_point point = {.label = evil,
                                  .end = evil,
                                  .n_trials = 1,
                                  .rounds = ROUNDS,
                                  .accuracy = 0.5,
                                  .best = 0.6,
                                  .accuracies = curve,
                                  .losses = curve,
                                  .view = &f->o};
    const struct fl_page_report report = {.name = evil,
                                          .sentence = evil,
                                          .quality = "Accuracy",
                                          .version = "1",
                                          .points = &point,
                                          .n_points = 1,
                                          .rounds = rounds,
                                          .n = ROUNDS};
    size_t i;

    for (i = 0; i < ROUNDS; i++) {
        rounds[i] = i + 1;
        curve[i] = 1 - 1 / (double)(i + 1);
    }
    if (strcmp(kind, "report") == 0) {
        f->o.simulated = true;
        return fl_page_report(&report, out);
    }
    if (strcmp(kind, "clients") == 0) {
        page_query_read(text, &query);
        return fl_page_clients(&f->o, &query, out);
    }
    f->detail.client = strcmp(kind, "client") == 0 ? &f->clients[0] : NULL;
    f->detail.round = &f->rounds[1];
    if (f->detail.client != NULL) {
        return fl_page_client(&f->detail, out);
    }
    return strcmp(kind, "round") == 0 ? fl_page_round(&f->detail, out)
                                      : fl_page_write_overview(&f->o, out);
}

int main(int argc, char **argv)
{
    struct federation *f = federation(ROUNDS, CLIENTS);
    char(*names)[FL_NAME_MAX] = f->names;
    struct fl_buf out;
    size_t i;
    int rv;

    if (getenv("PAGE_PLAIN") != NULL) {
        (void)snprintf(evil, sizeof(evil), "%s", "an example");
        f->status.why = sentence;
        for (i = 0; i < CLIENTS; i++) {
            names[i][strlen("client-00000")] = '\0';
        }
    }
    fl_buf_init(&out, 1 << 24);
    rv = sample(argc > 1 ? argv[1] : "overview", argc > 2 ? argv[2] : "", f, &out);
    if (rv == FL_OK && fwrite(out.data, 1, out.len, stdout) != out.len) {
        rv = FL_EIO;
    }
    fl_buf_done(&out);
    federation_done(f);
    return rv == FL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
