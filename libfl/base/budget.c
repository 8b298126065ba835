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

/* Add what `account` is, as it is now, to the sums of its budget and its owner, or take it away. */
static void tally(const struct fl_account *account, bool in)
{
    struct fl_budget *budget = account->budget;
    size_t n = in ? account->used : 0 - account->used; /* modulo, as the sums are */

    if (budget == NULL) {
        return;
    }
    budget->used += n;
    budget->leaving += account->leaving ? n : 0;
    budget->unknown += account->vouched == 0 ? n : 0;
    budget->unknown_leaving += account->vouched == 0 && account->leaving ? n : 0;
    if (account->party != NULL) {
        account->party->used += account->leaving ? 0 : n;
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
    if (party == NULL || --party->n_accounts > 0) {
        return;
    }
    at = party_place(account->budget, party->name);
    *at = party->next;
    free(party);
}

static void send_away(struct fl_account *account, enum fl_evict why)
{
    tally(account, false);
    account->leaving = true;
    tally(account, true);
    account->budget->evict(account->budget->ctx, account, why);
}

/* The list begins with the newest. */
static struct fl_account *oldest_of(const struct fl_party *party, const struct fl_budget *budget)
{
    struct fl_account *found = NULL;
    struct fl_account *a;

    FL_LIST_FOREACH (a, &budget->accounts, struct fl_account, link) {
        found = a->party == party && !a->leaving ? a : found;
    }
    return found;
}

static unsigned staying(const struct fl_party *party, const struct fl_budget *budget)
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
    tally(account, false);
    account->party = *at;
    account->party->n_accounts++;
    tally(account, true);
    if (budget->party_accounts > 0 && account->party->n_accounts > budget->party_accounts &&
        staying(account->party, budget) > budget->party_accounts)
    {
        send_away(oldest_of(account->party, budget), FL_EVICT_PLACES);
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

/* How many fair shares there are: a party is one, however many accounts it has. */
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

static void charge(struct fl_account *account, size_t n)
{
    struct fl_budget *budget = account->budget;

    tally(account, false);
    account->used += n;
    tally(account, true);
    account->peak = account->used > account->peak ? account->used : account->peak;
    if (budget != NULL) {
        budget->peak = budget->used > budget->peak ? budget->used : budget->peak;
    }
}

void fl_account_give(struct fl_account *account, size_t n)
{
    FL_REQUIRE(n <= account->used);
    tally(account, false);
    account->used -= n;
    tally(account, true);
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
    tally(account, false);
    if (known) {
        account->vouched++;
    } else {
        account->vouched--;
    }
    tally(account, true);
    if (account->vouched == (known ? 1 : 0)) {
        count_known(account, known);
    }
}

/* --- who goes --- */

static size_t held_by(const struct fl_account *account)
{
    return account->party != NULL ? account->party->used : account->used;
}

/*
 * The account that holds most among the known or the unknown ones; `extra` is asked for. Of known
 * ones what the whole party holds decides, then what the account does.
 */
static struct fl_account *largest(const struct fl_budget *budget, bool known,
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

static struct fl_account *victim(const struct fl_budget *budget, const struct fl_account *asking,
                                 size_t extra)
{
    struct fl_account *found = largest(budget, false, asking, extra);
    size_t share;
    bool one;

    if (found != NULL || asking->vouched == 0) {
        return found;
    }
    found = largest(budget, true, asking, extra);
    if (found == NULL) {
        return NULL;
    }
    one = found == asking || (found->party != NULL && found->party == asking->party);
    share = budget->limit / (budget->n_known > 0 ? budget->n_known : 1);
    share = share > budget->share ? share : budget->share;
    return held_by(found) + (one ? extra : 0) > share ? found : NULL;
}

static bool exceeds(size_t used, size_t extra, size_t limit)
{
    return used > limit || extra > limit - used;
}

/* Is there room for `extra` more, not counting what those that leave still hold? */
static bool has_room(const struct fl_budget *budget, const struct fl_account *asking, size_t extra)
{
    return !exceeds(budget->used - budget->leaving, extra, budget->limit) &&
           (asking->vouched > 0 || !exceeds(budget->unknown - budget->unknown_leaving, extra,
                                            budget->limit - budget->reserve));
}

/* `asking` wants `extra` more than what is free: make that free before long. */
static void make_room(struct fl_budget *budget, const struct fl_account *asking, size_t extra)
{
    while (!has_room(budget, asking, extra) && !asking->leaving) {
        struct fl_account *goes = victim(budget, asking, extra);

        if (goes == NULL) {
            return; /* Only known ones, each with its fair share. */
        }
        send_away(goes, FL_EVICT_MEMORY);
    }
}

/* Counts what those that leave still hold. */
static bool is_over(const struct fl_budget *budget, const struct fl_account *asking, size_t extra)
{
    return exceeds(budget->used, extra, budget->limit) ||
           (asking->vouched == 0 &&
            exceeds(budget->unknown, extra, budget->limit - budget->reserve));
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
    if (budget != NULL && is_over(budget, account, n)) {
        make_room(budget, account, n);
        /* What was evicted is still there: only who is known may run ahead of it. */
        if (account->leaving || account->vouched == 0) {
            return FL_ENOMEM;
        }
    }
    charge(account, n);
    return FL_OK;
}

void fl_account_add(struct fl_account *account, size_t n)
{
    struct fl_budget *budget = account->budget;

    charge(account, n);
    if (budget != NULL && is_over(budget, account, 0)) {
        make_room(budget, account, 0);
    }
}
