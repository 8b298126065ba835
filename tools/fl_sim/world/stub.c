#include "tools/fl_sim/world/world.h"
int fl_world_load(const struct fl_world_ask *ask, struct fl_world **ret, struct fl_err *err)
{
    (void)ask;
    (void)err;
    *ret = NULL;
    return FL_OK;
}
void fl_world_free(struct fl_world *w)
{
    (void)w;
}
void fl_world_client(const struct fl_world *w, uint64_t i, struct fl_world_client *ret)
{
    (void)w;
    (void)i;
    (void)ret;
}
struct fl_world_server fl_world_server(const struct fl_world *w)
{
    (void)w;
    return (struct fl_world_server){0, 0};
}
void fl_world_link(const struct fl_world *world, uint64_t client, uint64_t t_us, double *u,
                   double *d, uint64_t *t)
{
    (void)world;
    (void)client;
    (void)t_us;
    *u = *d = 0;
    *t = UINT64_MAX;
}
uint64_t fl_world_train_us(const struct fl_world *w, uint64_t i, uint64_t round, uint64_t samples)
{
    (void)w;
    (void)i;
    (void)round;
    (void)samples;
    return 0;
}
bool fl_world_up(const struct fl_world *w, uint64_t i, uint64_t t, uint64_t *until)
{
    (void)w;
    (void)i;
    (void)t;
    (void)until;
    return true;
}
bool fl_world_drop(const struct fl_world *w, uint64_t i, uint64_t round, uint64_t attempt,
                   double *share, uint64_t *away)
{
    (void)w;
    (void)i;
    (void)round;
    (void)attempt;
    (void)share;
    (void)away;
    return false;
}
