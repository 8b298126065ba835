/* FedNova: updates divided by their local steps. */
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

static void nova_init(struct fed *f, size_t n, const double *steps)
{
    size_t k;

    fed_init(f, n);
    for (k = 0; k < n; k++) {
        f->clients[k].steps = steps[k];
    }
}

static struct fl_options *nova_options(const char *text)
{
    return options_of(&fl_aggregate_nova.policy, text, NULL);
}

/* Equations 9 and 10 plainly: the entry's new value. */
static double nova_plainly(const struct fed *f, size_t i, const double *steps)
{
    double total = 0, mean_steps = 0, sum = 0;
    size_t k;

    for (k = 0; k < f->n; k++) {
        total += f->units[k][fed_unit_of(f, i)] ? f->clients[k].weight : 0;
    }
    for (k = 0; k < f->n; k++) {
        double p = f->units[k][fed_unit_of(f, i)] ? f->clients[k].weight / total : 0;

        mean_steps += p * steps[k];
        sum += p * (double)f->sent[k][0][i] / steps[k];
    }
    return (double)f->theta[i] + mean_steps * sum;
}

TEST_EACH(equal_steps_give_fedavg_bit_for_bit, 3)
{
    double steps[5];
    struct fed f;
    float *mean;
    size_t k;

    for (k = 0; k < 5; k++) {
        steps[k] = _i == 0 ? 1 : _i == 1 ? 7 : 19.37;
    }
    nova_init(&f, 5, steps);
    mean = fed_model(&f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL));
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_nova, nova_options(NULL)), FL_OK);
    ck_assert_mem_eq(mean, f.theta_new, f.count * sizeof(float));
    free(mean);
    fed_done(&f);
}

TEST_EACH(updates_are_divided_by_their_steps_and_multiplied_by_the_mean_of_them, 2)
{
    const double steps[5] = {10, 40, 12, 25, 3};
    struct fed f;
    size_t i;

    nova_init(&f, 5, steps);
    f.units[1][0] = f.units[3][2] = (uint8_t)(_i == 0); /* Means are per unit. */
    f.distances = _i == 0;
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_nova, nova_options(NULL)), FL_OK);
    for (i = 0; i < f.count; i++) {
        double want = fed_is_buffer(&f, i) ? (double)f.theta[i] + fed_mean(&f, 0, i, true)
                                           : nova_plainly(&f, i, steps);

        ck_assert_double_eq_tol((double)f.theta_new[i], want, 1e-6);
    }
    fed_done(&f);
}

/* The point of FedNova: clients whose each step moves alike count by their samples, however many
   steps they make. */
TEST(clients_that_move_alike_in_each_step_count_by_their_samples)
{
    const double steps[2] = {2, 8};
    struct fed f;
    size_t i;

    nova_init(&f, 2, steps);
    f.clients[0].weight = f.clients[1].weight = 1;
    for (i = 0; i < f.count; i++) {
        f.sent[0][0][i] = 2 * 1.0f;
        f.sent[1][0][i] = 8 * -1.0f;
    }
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_nova, nova_options(NULL)), FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert(fed_is_buffer(&f, i) || f.theta_new[i] == f.theta[i]);
    }
    fed_done(&f);
}

/* A client that claims 1e6 steps, or next to none, counts as steps_cap times the median of 10. */
TEST_EACH(a_claim_of_steps_counts_up_to_the_cap_around_the_median, 2)
{
    double steps[5] = {10, 40, 9, 10, 3};
    struct fed f;
    size_t i;

    steps[1] = _i == 0 ? 1e6 : 1e-3;
    nova_init(&f, 5, steps);
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_nova, nova_options("steps_cap=4")), FL_OK);
    /* Medians: 3 9 10 10 1e6 and 1e-3 3 9 10 10. */
    steps[1] = _i == 0 ? 40 : 2.25;
    for (i = 0; i < f.count; i++) {
        ck_assert(fed_is_buffer(&f, i) ||
                  fabs((double)f.theta_new[i] - nova_plainly(&f, i, steps)) < 1e-6);
    }
    fed_done(&f);
}

TEST_EACH(a_client_without_steps_is_at_fault, 3)
{
    static const double bad[] = {0, -1, (double)INFINITY};
    double steps[3] = {10, 10, 10};
    struct fed f;

    steps[1] = bad[_i];
    nova_init(&f, 3, steps);
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_nova, nova_options(NULL)), FL_ENUMERIC);
    ck_assert_uint_eq(f.blamed, 1);
    ck_assert_ptr_nonnull(strstr(f.err.msg, "local steps"));
    fed_done(&f);
}
