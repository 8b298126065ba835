/* Who goes, and who does not, when the memory for peers is used up. */
#include <check.h>

#include "libfl/base/budget.h"
#include "tests/lib/suites.h"

#define N 8

struct world {
    struct fl_budget budget;
    struct fl_account account[N];
    unsigned n_evicted;
    struct fl_account *evicted[N];
    enum fl_evict why; /* of the last one */
};

static struct world w;

static void evict(void *ctx, struct fl_account *account, enum fl_evict why)
{
    struct world *world = ctx;

    world->why = why;
    ck_assert_uint_lt(world->n_evicted, N);
    world->evicted[world->n_evicted++] = account;
}

/* Accounts 0 … N-1, each of at most `own` bytes; those below `known` are known. */
static void begin(size_t limit, size_t share, size_t own, unsigned known)
{
    unsigned i;

    w = (struct world){0};
    fl_budget_init(&w.budget, limit, share, evict, &w);
    for (i = 0; i < N; i++) {
        fl_account_open(&w.account[i], &w.budget, own, NULL);
        if (i < known) {
            fl_account_vouch(&w.account[i], true);
        }
    }
}

static void end(void)
{
    unsigned i;

    for (i = 0; i < N; i++) {
        fl_account_close(&w.account[i]);
    }
    ck_assert_uint_eq(w.budget.used, 0);
    ck_assert_uint_eq(w.budget.leaving, 0);
    ck_assert_uint_eq(w.budget.unknown, 0);
    ck_assert_uint_eq(w.budget.unknown_leaving, 0);
    ck_assert_uint_eq(w.budget.n_known, 0);
    ck_assert(fl_list_is_empty(&w.budget.accounts));
    for (i = 0; i < FL_BUDGET_BUCKETS; i++) {
        ck_assert_ptr_null(w.budget.parties[i]);
    }
}

static void gone(struct fl_account *account)
{
    fl_account_close(account);
    fl_account_open(account, &w.budget, 1000, NULL);
}

TEST(an_account_has_a_limit_of_its_own)
{
    begin(1000, 0, 100, 0);
    ck_assert_int_eq(fl_account_take(&w.account[0], 60), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[0], 41), FL_ELIMIT);
    ck_assert_int_eq(fl_account_take(&w.account[0], SIZE_MAX), FL_ELIMIT);
    ck_assert_int_eq(fl_account_take(&w.account[0], 40), FL_OK);
    ck_assert_uint_eq(w.budget.used, 100);
    fl_account_give(&w.account[0], 30);
    ck_assert_int_eq(fl_account_take(&w.account[0], 30), FL_OK);
    ck_assert_uint_eq(w.budget.peak, 100);
    ck_assert_uint_eq(w.n_evicted, 0);
    end();
}

TEST(unknown_peers_never_pass_the_budget_and_the_largest_goes)
{
    begin(300, 0, 1000, 0);
    ck_assert_int_eq(fl_account_take(&w.account[0], 100), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 150), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[2], 51), FL_ENOMEM);
    ck_assert_uint_eq(w.budget.used, 250);
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_ptr_eq(w.evicted[0], &w.account[1]);
    /* Until it is gone its bytes are used, but nobody else has to go for them. */
    ck_assert_int_eq(fl_account_take(&w.account[2], 51), FL_ENOMEM);
    ck_assert_uint_eq(w.n_evicted, 1);
    gone(&w.account[1]);
    ck_assert_int_eq(fl_account_take(&w.account[2], 51), FL_OK);
    ck_assert_uint_eq(w.budget.peak, 250);
    end();
}

TEST(who_asks_for_more_than_all_others_hold_goes_itself)
{
    begin(300, 0, 1000, 0);
    ck_assert_int_eq(fl_account_take(&w.account[0], 100), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 150), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 60), FL_ENOMEM);
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_ptr_eq(w.evicted[0], &w.account[1]);
    ck_assert_int_eq(fl_account_take(&w.account[1], 1), FL_OK); /* it fits */
    ck_assert_int_eq(fl_account_take(&w.account[1], 60), FL_ENOMEM);
    ck_assert_uint_eq(w.n_evicted, 1); /* told once */
    end();
}

TEST(known_peers_go_on_at_the_cost_of_unknown_ones)
{
    begin(300, 0, 1000, 2);
    ck_assert_int_eq(fl_account_take(&w.account[0], 200), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[5], 40), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[6], 50), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 40), FL_OK);
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_ptr_eq(w.evicted[0], &w.account[6]);
    ck_assert_int_eq(fl_account_take(&w.account[1], 40), FL_OK);
    ck_assert_uint_eq(w.n_evicted, 2);
    ck_assert_ptr_eq(w.evicted[1], &w.account[5]);
    end();
}

TEST(among_known_peers_only_a_hog_goes)
{
    begin(400, 0, 1000, 4);
    ck_assert_int_eq(fl_account_take(&w.account[0], 250), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 100), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[2], 90), FL_OK);
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_ptr_eq(w.evicted[0], &w.account[0]);
    gone(&w.account[0]);
    fl_account_vouch(&w.account[0], true);
    /* All within their fair share of 100, or of what is always allowed: nobody goes. */
    ck_assert_int_eq(fl_account_take(&w.account[0], 100), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[3], 100), FL_OK);
    fl_account_add(&w.account[2], 10);
    ck_assert_uint_eq(w.n_evicted, 1);
    fl_account_add(&w.account[2], 1);
    ck_assert_uint_eq(w.n_evicted, 2);
    ck_assert_ptr_eq(w.evicted[1], &w.account[2]);
    end();
}

TEST(what_is_always_allowed_is_no_reason_to_go)
{
    begin(100, 60, 1000, 3);
    ck_assert_int_eq(fl_account_take(&w.account[0], 60), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 60), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[2], 60), FL_OK);
    ck_assert_uint_eq(w.n_evicted, 0);
    /* And an unknown one gets nothing now. */
    ck_assert_int_eq(fl_account_take(&w.account[7], 1), FL_ENOMEM);
    end();
}

TEST(who_is_no_longer_vouched_for_is_unknown_again)
{
    begin(100, 0, 1000, 1);
    fl_account_vouch(&w.account[0], true);
    fl_account_vouch(&w.account[0], false);
    ck_assert_int_eq(fl_account_take(&w.account[0], 90), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 20), FL_ENOMEM);
    ck_assert_ptr_eq(w.evicted[0], &w.account[1]);
    fl_account_vouch(&w.account[0], false);
    ck_assert_int_eq(fl_account_take(&w.account[2], 20), FL_ENOMEM);
    ck_assert_ptr_eq(w.evicted[1], &w.account[0]);
    end();
}

TEST(without_a_budget_only_the_own_limit_counts)
{
    struct fl_account alone = {0};

    fl_account_open(&alone, NULL, 10, NULL);
    ck_assert_int_eq(fl_account_take(&alone, 11), FL_ELIMIT);
    ck_assert_int_eq(fl_account_take(&alone, 10), FL_OK);
    fl_account_add(&alone, 5);
    fl_account_vouch(&alone, true);
    ck_assert_uint_eq(alone.used, 15);
    fl_account_close(&alone);
}

TEST(what_is_spare_ends_at_half_of_the_account_and_of_the_budget)
{
    struct fl_account alone = {0};

    ck_assert_uint_eq(fl_account_spare(&alone), SIZE_MAX);
    begin(100, 0, 60, 0);
    ck_assert_uint_eq(fl_account_spare(&w.account[0]), 30);
    ck_assert_int_eq(fl_account_take(&w.account[0], 25), FL_OK);
    ck_assert_uint_eq(fl_account_spare(&w.account[0]), 5);
    ck_assert_uint_eq(fl_account_spare(&w.account[1]), 25);
    ck_assert_int_eq(fl_account_take(&w.account[1], 30), FL_OK);
    ck_assert_uint_eq(fl_account_spare(&w.account[2]), 0);
    end();
}

/* Three of the four known ones are connections of one client: there are two shares. */
TEST(all_accounts_of_a_party_have_one_fair_share)
{
    unsigned i;

    begin(400, 0, 1000, 0);
    for (i = 0; i < 4; i++) {
        fl_account_join(&w.account[i], i < 3 ? "hog" : "honest");
        fl_account_vouch(&w.account[i], true);
    }
    ck_assert_uint_eq(w.budget.n_known, 2);
    ck_assert_int_eq(fl_account_take(&w.account[0], 90), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 70), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[2], 80), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[3], 160), FL_OK);
    ck_assert_uint_eq(w.n_evicted, 0);
    ck_assert_int_eq(fl_account_take(&w.account[3], 40), FL_OK); /* its share of 200 */
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_ptr_eq(w.evicted[0], &w.account[0]); /* what holds most of those of the hog */
    ck_assert_int_eq(w.why, FL_EVICT_MEMORY);
    gone(&w.account[0]);
    fl_account_vouch(&w.account[1], false);
    ck_assert_uint_eq(w.budget.n_known, 2);
    fl_account_vouch(&w.account[2], false);
    ck_assert_uint_eq(w.budget.n_known, 1);
    end();
}

/* One client with three connections, beside one that holds nothing. */
TEST(a_party_does_not_take_the_memory_of_its_evicted_accounts_once_more)
{
    unsigned i;

    begin(400, 0, 1000, 0);
    for (i = 0; i < 4; i++) {
        fl_account_join(&w.account[i], i < 3 ? "hog" : "honest");
        fl_account_vouch(&w.account[i], true);
    }
    ck_assert_int_eq(fl_account_take(&w.account[0], 200), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[1], 190), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[2], 20), FL_ENOMEM);
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_ptr_eq(w.evicted[0], &w.account[0]);
    ck_assert_int_eq(fl_account_take(&w.account[2], 20), FL_ENOMEM);
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_uint_eq(w.budget.peak, 390);
    /* The other client does not wait for the connection to be closed. */
    ck_assert_int_eq(fl_account_take(&w.account[3], 200), FL_OK);
    ck_assert_uint_eq(w.n_evicted, 1);
    gone(&w.account[0]);
    ck_assert_int_eq(fl_account_take(&w.account[2], 10), FL_OK);
    end();
}

TEST(of_more_accounts_than_a_party_may_have_the_oldest_goes)
{
    begin(400, 0, 1000, 0);
    w.budget.party_accounts = 2;
    fl_account_join(&w.account[2], "edge-1");
    fl_account_join(&w.account[4], "edge-1");
    fl_account_join(&w.account[5], "edge-2");
    ck_assert_uint_eq(w.n_evicted, 0);
    fl_account_join(&w.account[6], "edge-1");
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_ptr_eq(w.evicted[0], &w.account[2]);
    ck_assert_int_eq(w.why, FL_EVICT_PLACES);
    fl_account_join(&w.account[7], "edge-1"); /* the first one has not gone yet */
    ck_assert_uint_eq(w.n_evicted, 2);
    ck_assert_ptr_eq(w.evicted[1], &w.account[4]);
    fl_account_join(&w.account[7], "edge-3"); /* It is edge-1 for good. */
    ck_assert_str_eq(w.account[7].party->name, "edge-1");
    end();
}

TEST(the_calls_of_a_party_are_counted_over_its_accounts)
{
    begin(400, 0, 1000, 0);
    w.budget.party_calls = 2;
    fl_account_join(&w.account[0], "edge-1");
    fl_account_join(&w.account[2], "edge-2");
    fl_account_count_call(&w.account[0], true);
    fl_account_count_call(&w.account[1], true); /* before its name was known */
    ck_assert(fl_account_may_call(&w.account[0]));
    fl_account_join(&w.account[1], "edge-1");
    ck_assert(!fl_account_may_call(&w.account[0]));
    ck_assert(!fl_account_may_call(&w.account[1]));
    ck_assert(fl_account_may_call(&w.account[2]));
    ck_assert(fl_account_may_call(&w.account[3])); /* of no party */
    fl_account_count_call(&w.account[1], false);
    ck_assert(fl_account_may_call(&w.account[0]));
    fl_account_count_call(&w.account[1], true);
    gone(&w.account[1]);
    ck_assert(fl_account_may_call(&w.account[0]));
    fl_account_count_call(&w.account[0], false);
    end();
}

TEST(unknown_peers_never_get_what_is_reserved_for_known_ones)
{
    begin(400, 0, 1000, 1);
    w.budget.reserve = 100;
    ck_assert_int_eq(fl_account_take(&w.account[1], 301), FL_ELIMIT);
    ck_assert_int_eq(fl_account_take(&w.account[1], 200), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[2], 100), FL_OK);
    ck_assert_int_eq(fl_account_take(&w.account[2], 1), FL_ENOMEM);
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_ptr_eq(w.evicted[0], &w.account[1]);
    /* A known one takes it, and no client has to go. */
    ck_assert_int_eq(fl_account_take(&w.account[0], 100), FL_OK);
    ck_assert_uint_eq(w.n_evicted, 1);
    ck_assert_uint_eq(w.budget.used, 400);
    end();
}
