/*
 * Accounts for memory held on behalf of peers, and the choice of accounts to evict. Runs on one
 * loop thread; no clock, no I/O. Does not free memory or close connections: the owner of an account
 * does (evict callback).
 */

#include "libfl/base/budget.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/checksum.h"
#include "libfl/base/str.h"

void fl_budget_init(struct fl_budget *budget, size_t limit, size_t share, fl_budget_evict_cb evict,
                    void *ctx)
{
    *budget = (struct fl_budget){.limit = limit, .share = share, .evict = evict, .ctx = ctx};
}

/* Add the account in its current state to the sums of its budget and party (`in`), or subtract it.
 */
static void budget_tally(const struct fl_account *account, bool in)
{
    struct fl_budget *budget = account->budget;
    size_t n = in ? account->used : 0 - account->used; /* wraps, like the sums */

    if (budget == NULL) {
        return;
    }
    budget->used += n;
    budget->leaving += account->leaving ? n : 0;
    budget->unknown += account->vouched == 0 ? n : 0;
    budget->unknown_leaving += account->vouched == 0 && account->leaving ? n : 0;
    if (account->party != NULL) {
        account->party->used += account->leaving ? 0 : n;
        account->party->leaving += account->leaving ? n : 0;
    }
}

/* --- parties --- */

static struct fl_party **party_place(struct fl_budget *budget, const char *name)
{
    uint64_t hash = fl_checksum(name, strlen(name));
    struct fl_party **at = &budget->parties[hash % FL_BUDGET_BUCKETS];

    while (*at != NULL && strcmp((*at)->name, name) != 0) {
        at = &(*at)->next;
    }
    return at;
}

static void party_leave(struct fl_account *account)
{
    struct fl_party *party = account->party;
    struct fl_party **at;

    account->party = NULL;
    if (party == NULL) {
        return;
    }
    party->n_calls -= account->n_calls;
    if (--party->n_accounts > 0) {
        return;
    }
    at = party_place(account->budget, party->name);
    *at = party->next;
    free(party);
}

static void account_evict(struct fl_account *account, enum fl_evict why)
{
    budget_tally(account, false);
    account->leaving = true;
    budget_tally(account, true);
    account->budget->evict(account->budget->ctx, account, why);
}

/* The list is ordered from newest to oldest. */
static struct fl_account *oldest_of(const struct fl_party *party, const struct fl_budget *budget)
{
    struct fl_account *found = NULL;
    struct fl_account *a;

    FL_LIST_FOREACH (a, &budget->accounts, struct fl_account, link) {
        found = a->party == party && !a->leaving ? a : found;
    }
    return found;
}

static unsigned count_remaining_accounts(const struct fl_party *party,
                                         const struct fl_budget *budget)
{
    const struct fl_account *a;
    unsigned n = 0;

    FL_LIST_FOREACH (a, &budget->accounts, struct fl_account, link) {
        n += a->party == party && !a->leaving;
        if (n > budget->party_accounts) {
            break;
        }
    }
    return n;
}

void fl_account_join(struct fl_account *account, const char *name)
{
    struct fl_budget *budget = account->budget;
    struct fl_party **at;

    if (budget == NULL || account->party != NULL || account->vouched > 0) {
        return;
    }
    at = party_place(budget, name);
    if (*at == NULL) {
        struct fl_party *party = calloc(1, sizeof(*party));

        if (party == NULL || fl_str_copy(party->name, sizeof(party->name), name) != FL_OK) {
            free(party);
            return;
        }
        *at = party;
    }
    budget_tally(account, false);
    account->party = *at;
    account->party->n_accounts++;
    account->party->n_calls += account->n_calls;
    budget_tally(account, true);
    if (budget->party_accounts > 0 && account->party->n_accounts > budget->party_accounts &&
        count_remaining_accounts(account->party, budget) > budget->party_accounts)
    {
        account_evict(oldest_of(account->party, budget), FL_EVICT_PLACES);
    }
}

bool fl_account_may_call(const struct fl_account *account)
{
    const struct fl_budget *budget = account->budget;

    return account->party == NULL || budget->party_calls == 0 ||
           account->party->n_calls < budget->party_calls;
}

void fl_account_count_call(struct fl_account *account, bool begins)
{
    unsigned n = begins ? 1 : (unsigned)-1; /* wraps, like the sums */

    account->n_calls += n;
    if (account->party != NULL) {
        account->party->n_calls += n;
    }
}

/* --- accounts --- */

void fl_account_open(struct fl_account *account, struct fl_budget *budget, size_t limit,
                     void *owner)
{
    *account = (struct fl_account){.budget = budget, .limit = limit, .owner = owner};
    if (budget == NULL) {
        return;
    }
    fl_list_prepend(&budget->accounts, &account->link);
}

/* Count the fair shares: a party counts once, however many accounts it has. */
static void count_known(struct fl_account *account, bool known)
{
    struct fl_budget *budget = account->budget;

    if (budget == NULL) {
        return;
    }
    if (account->party != NULL) {
        account->party->n_known += known ? 1 : (unsigned)-1;
        if (account->party->n_known != (known ? 1 : 0)) {
            return;
        }
    }
    budget->n_known += known ? 1 : (size_t)-1;
}

void fl_account_close(struct fl_account *account)
{
    struct fl_budget *budget = account->budget;

    fl_account_give(account, account->used);
    if (budget != NULL) {
        if (account->vouched > 0) {
            count_known(account, false);
        }
        fl_list_remove(&account->link);
        party_leave(account);
    }
    *account = (struct fl_account){0};
}

static void account_charge(struct fl_account *account, size_t n)
{
    struct fl_budget *budget = account->budget;

    budget_tally(account, false);
    account->used += n;
    budget_tally(account, true);
    account->peak = account->used > account->peak ? account->used : account->peak;
    if (budget != NULL) {
        budget->peak = budget->used > budget->peak ? budget->used : budget->peak;
    }
}

void fl_account_give(struct fl_account *account, size_t n)
{
    FL_REQUIRE(n <= account->used);
    budget_tally(account, false);
    account->used -= n;
    budget_tally(account, true);
}

static size_t below_half(size_t limit, size_t used)
{
    return limit / 2 > used ? limit / 2 - used : 0;
}

size_t fl_account_spare(const struct fl_account *account)
{
    const struct fl_budget *budget = account->budget;
    size_t own = account->limit > 0 ? below_half(account->limit, account->used) : SIZE_MAX;
    size_t all = budget != NULL ? below_half(budget->limit, budget->used) : SIZE_MAX;

    return own < all ? own : all;
}

void fl_account_vouch(struct fl_account *account, bool known)
{
    FL_REQUIRE(known || account->vouched > 0);
    budget_tally(account, false);
    if (known) {
        account->vouched++;
    } else {
        account->vouched--;
    }
    budget_tally(account, true);
    if (account->vouched == (known ? 1 : 0)) {
        count_known(account, known);
    }
}

/* --- eviction --- */

/* What a known account, or all of its party, may hold when the budget is used up. */
static size_t fair_share(const struct fl_budget *budget)
{
    size_t share = budget->limit / (budget->n_known > 0 ? budget->n_known : 1);

    return share > budget->share ? share : budget->share;
}

static size_t held_by(const struct fl_account *account)
{
    return account->party != NULL ? account->party->used : account->used;
}

/*
 * The account with the largest use among the known or the unknown ones; `asking` requests `extra`
 * more. Known accounts are compared by the use of their party first, then by their own.
 */
static struct fl_account *largest_account(const struct fl_budget *budget, bool known,
                                          const struct fl_account *asking, size_t extra)
{
    struct fl_account *found = NULL;
    struct fl_account *a;
    size_t most = 0;
    size_t most_own = 0;

    FL_LIST_FOREACH (a, &budget->accounts, struct fl_account, link) {
        bool one = a == asking || (a->party != NULL && a->party == asking->party);
        size_t own = a->used + (a == asking ? extra : 0);
        size_t holds = known ? held_by(a) + (one ? extra : 0) : own;

        if (!a->leaving && (a->vouched > 0) == known && own > 0 &&
            (holds > most || (holds == most && own > most_own)))
        {
            found = a;
            most = holds;
            most_own = own;
        }
    }
    return found;
}

static struct fl_account *account_to_evict(const struct fl_budget *budget,
                                           const struct fl_account *asking, size_t extra)
{
    struct fl_account *found = largest_account(budget, false, asking, extra);
    bool one;

    if (found != NULL || asking->vouched == 0) {
        return found;
    }
    found = largest_account(budget, true, asking, extra);
    if (found == NULL) {
        return NULL;
    }
    one = found == asking || (found->party != NULL && found->party == asking->party);
    return held_by(found) + (one ? extra : 0) > fair_share(budget) ? found : NULL;
}

static bool sum_exceeds(size_t used, size_t extra, size_t limit)
{
    return used > limit || extra > limit - used;
}

/* Is there room for `extra` more, not counting memory that evicted accounts still hold? */
static bool budget_has_room(const struct fl_budget *budget, const struct fl_account *asking,
                            size_t extra)
{
    return !sum_exceeds(budget->used - budget->leaving, extra, budget->limit) &&
           (asking->vouched > 0 || !sum_exceeds(budget->unknown - budget->unknown_leaving, extra,
                                                budget->limit - budget->reserve));
}

/* `asking` needs `extra` more than is free: evict accounts until that will be free. */
static void make_room(struct fl_budget *budget, const struct fl_account *asking, size_t extra)
{
    while (!budget_has_room(budget, asking, extra) && !asking->leaving) {
        struct fl_account *goes = account_to_evict(budget, asking, extra);

        if (goes == NULL) {
            return; /* Only known accounts are left, each within its fair share. */
        }
        account_evict(goes, FL_EVICT_MEMORY);
    }
}

/* Counts memory that evicted accounts still hold. */
static bool budget_is_exceeded(const struct fl_budget *budget, const struct fl_account *asking,
                               size_t extra)
{
    return sum_exceeds(budget->used, extra, budget->limit) ||
           (asking->vouched == 0 &&
            sum_exceeds(budget->unknown, extra, budget->limit - budget->reserve));
}

/*
 * Evicted memory is not free yet. Only known accounts may exceed the budget by it, within their
 * fair share: else a party takes the memory of its evicted accounts a second time.
 */
static bool budget_may_be_exceeded(const struct fl_budget *budget, const struct fl_account *asking,
                                   size_t extra)
{
    size_t leaving = asking->party != NULL ? asking->party->leaving : 0;

    return asking->vouched > 0 && held_by(asking) + leaving + extra <= fair_share(budget);
}

int fl_account_take(struct fl_account *account, size_t n)
{
    struct fl_budget *budget = account->budget;

    if (account->limit > 0 && (n > account->limit || account->used > account->limit - n)) {
        return FL_ELIMIT;
    }
    if (budget != NULL && n > budget->limit - (account->vouched == 0 ? budget->reserve : 0)) {
        return FL_ELIMIT;
    }
    if (budget != NULL && budget_is_exceeded(budget, account, n)) {
        make_room(budget, account, n);
        if (account->leaving || !budget_may_be_exceeded(budget, account, n)) {
            return FL_ENOMEM;
        }
    }
    account_charge(account, n);
    return FL_OK;
}

void fl_account_add(struct fl_account *account, size_t n)
{
    struct fl_budget *budget = account->budget;

    account_charge(account, n);
    if (budget != NULL && budget_is_exceeded(budget, account, 0)) {
        make_room(budget, account, 0);
    }
}
