#include "tests/lib/client_spy.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

struct fl_solver {
    struct fl_net *net;
    size_t count;
    float *params;
    bool stepped;
};

struct spy spy;

static struct spy_bytes seen(const struct fl_solver_bytes *bytes)
{
    struct spy_bytes s = {.len = bytes->len};

    if (bytes->len >= sizeof(float)) {
        s.first = (double)*(const float *)bytes->data;
    }
    return s;
}

static int spy_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                      struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *s = calloc(1, sizeof(*s));
    size_t i;

    (void)o;
    (void)err;
    ck_assert_ptr_nonnull(s);
    s->net = setup->net;
    s->count = fl_layout_count(fl_net_layout(setup->net));
    s->params = malloc(s->count * sizeof(*s->params));
    ck_assert_ptr_nonnull(s->params);
    fl_net_get(s->net, s->params);
    spy.setup = *setup;
    spy.start = (double)s->params[0];
    spy.anchor = setup->anchor != NULL ? (double)setup->anchor[0] : 0;
    for (i = 0; i < 2; i++) {
        spy.inputs[i] = setup->inputs != NULL ? seen(&setup->inputs[i]) : (struct spy_bytes){0};
        spy.kept[i] = setup->kept != NULL ? seen(&setup->kept[i]) : (struct spy_bytes){0};
    }
    *ret = s;
    return FL_OK;
}

static void spy_destroy(struct fl_solver *s)
{
    free(s->params);
    free(s);
}

static double spy_step(struct fl_solver *s, const float *x, const int32_t *y, size_t batch)
{
    size_t i;

    (void)x;
    (void)y;
    (void)batch;
    if (!s->stepped && spy.at_step != NULL) {
        spy.at_step(spy.ctx);
    }
    s->stepped = true;
    for (i = 0; i < s->count; i++) {
        s->params[i] += SPY_STEP;
    }
    fl_net_set(s->net, s->params);
    return 0.25;
}

static void fill(struct fl_buf *out, float value, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        ck_assert_int_eq(fl_buf_add(out, &value, sizeof(value)), FL_OK);
    }
}

static int spy_finish(struct fl_solver *s, struct fl_buf *kept, struct fl_buf *sent,
                      struct fl_err *err)
{
    (void)err;
    fill(&kept[0], spy.keeps[0], spy.keeps_len[0] != 0 ? spy.keeps_len[0] : s->count);
    if (!spy.leaves_two) {
        fill(&kept[1], spy.keeps[1], spy.keeps_len[1] != 0 ? spy.keeps_len[1] : s->count);
    }
    fill(&sent[0], spy.sends, spy.sends_len != 0 ? spy.sends_len : s->count);
    return FL_OK;
}

static const char *const spy_inputs[] = {"second", "first", NULL};
static const char *const spy_sends[] = {"beside", NULL};
static const struct fl_keep spy_keeps[] = {{"one", true}, {"two", false}, {NULL, false}};
const struct fl_solver_ops spy_solver = {
    .policy = {.name = "spy", .help = "remembers", .source = "tests", .options = fl_opt_none},
    .inputs = spy_inputs,
    .sends = spy_sends,
    .keeps = spy_keeps,
    .create = spy_create,
    .destroy = spy_destroy,
    .step = spy_step,
    .finish = spy_finish,
};

void spy_describe(struct rig *r, const struct rig_server *server)
{
    struct fl_setup *setup = rig_setup(server);

    (void)memset(&spy, 0, sizeof(spy));
    setup->solver = &spy_solver;
    rig_use(r, setup);
}
