#include "libfl/base/budget.h"

#include <string.h>

void fl_budget_init(struct fl_budget *budget, size_t limit, size_t share, fl_budget_evict_cb evict,
                    void *ctx)
{
    *budget = (struct fl_budget){.limit = limit, .share = share, .evict = evict, .ctx = ctx};
}

void fl_account_open(struct fl_account *account, struct fl_budget *budget, size_t limit,
                     void *owner)
{
    *account = (struct fl_account){.budget = budget, .limit = limit, .owner = owner};
    if (budget == NULL) {
        return;
    }
    account->next = budget->accounts;
    if (account->next != NULL) {
        account->next->prev = account;
    }
    budget->accounts = account;
}

void fl_account_close(struct fl_account *account)
{
    struct fl_budget *budget = account->budget;

    fl_account_give(account, account->used);
    if (budget != NULL) {
        budget->n_known -= account->vouched > 0 ? 1 : 0;
        if (account->prev != NULL) {
            account->prev->next = account->next;
        } else {
            budget->accounts = account->next;
        }
        if (account->next != NULL) {
            account->next->prev = account->prev;
        }
    }
    *account = (struct fl_account){0};
}

static void charge(struct fl_account *account, size_t n)
{
    struct fl_budget *budget = account->budget;

    account->used += n;
    account->peak = account->used > account->peak ? account->used : account->peak;
    if (budget != NULL) {
        budget->used += n;
        budget->peak = budget->used > budget->peak ? budget->used : budget->peak;
        budget->leaving += account->leaving ? n : 0;
    }
}

void fl_account_give(struct fl_account *account, size_t n)
{
    struct fl_budget *budget = account->budget;

    FL_REQUIRE(n <= account->used);
    account->used -= n;
    if (budget != NULL) {
        budget->used -= n;
        budget->leaving -= account->leaving ? n : 0;
    }
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
    struct fl_budget *budget = account->budget;

    FL_REQUIRE(known || account->vouched > 0);
    if (known) {
        account->vouched++;
    } else {
        account->vouched--;
    }
    if (budget != NULL && account->vouched == (known ? 1 : 0)) {
        budget->n_known += known ? 1 : (size_t)-1;
    }
}

/* The account that holds most among the known or the unknown ones; `extra` is asked for. */
static struct fl_account *largest(const struct fl_budget *budget, bool known,
                                  const struct fl_account *asking, size_t extra)
{
    struct fl_account *found = NULL;
    struct fl_account *a;
    size_t most = 0;

    for (a = budget->accounts; a != NULL; a = a->next) {
        size_t holds = a->used + (a == asking ? extra : 0);

        if (!a->leaving && (a->vouched > 0) == known && holds > most) {
            found = a;
            most = holds;
        }
    }
    return found;
}

static struct fl_account *victim(const struct fl_budget *budget, const struct fl_account *asking,
                                 size_t extra)
{
    struct fl_account *found = largest(budget, false, asking, extra);
    size_t share;

    if (found != NULL || asking->vouched == 0) {
        return found;
    }
    found = largest(budget, true, asking, extra);
    share = budget->limit / (budget->n_known > 0 ? budget->n_known : 1);
    share = share > budget->share ? share : budget->share;
    return found != NULL && found->used + (found == asking ? extra : 0) > share ? found : NULL;
}

/* `asking` wants `extra` more than what is free: make that free before long. */
static void make_room(struct fl_budget *budget, const struct fl_account *asking, size_t extra)
{
    while (budget->used - budget->leaving + extra > budget->limit && !asking->leaving) {
        struct fl_account *goes = victim(budget, asking, extra);

        if (goes == NULL) {
            return; /* Only known ones, each with its fair share. */
        }
        goes->leaving = true;
        budget->leaving += goes->used;
        budget->evict(budget->ctx, goes);
    }
}

int fl_account_take(struct fl_account *account, size_t n)
{
    struct fl_budget *budget = account->budget;

    if (account->limit > 0 && (n > account->limit || account->used > account->limit - n)) {
        return FL_ELIMIT;
    }
    if (budget != NULL && n > budget->limit) {
        return FL_ELIMIT;
    }
    if (budget != NULL && budget->used > budget->limit - n) {
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
    if (budget != NULL && budget->used > budget->limit) {
        make_room(budget, account, 0);
    }
}
