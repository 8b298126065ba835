#ifndef FL_BASE_BUDGET_H
#define FL_BASE_BUDGET_H

/*
 * A budget for memory held on behalf of peers: data that they have not finished sending, have not
 * read, or keep alive by not reading. Every connection has an account; code that holds memory for
 * it charges the account and gives the bytes back when the memory is freed.
 *
 * Each account has a limit, and all accounts together stay below the budget, except for what known
 * accounts take within their fair share while evicted ones still hold memory. When the budget is
 * used up, unauthenticated (unknown) accounts are evicted first, the largest first; a known account
 * is evicted only when it holds more than its fair share and no unknown account holds anything.
 * This module selects the account, its owner closes it (`evict`). A share of the budget, `reserve`,
 * is never given to unknown accounts.
 *
 * Accounts of one name (fl_account_join()) are a party: they share one fair share, and above
 * `party_accounts` accounts the oldest is evicted; their calls are counted together
 * (`party_calls`). So a client gains nothing by opening more connections.
 *
 * Ownership: accounts are members of their owners, which open and close them. Threading: one loop.
 * No clock, no I/O.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/identity.h"
#include "libfl/base/list.h"

struct fl_account;

enum fl_evict {
    FL_EVICT_MEMORY, /* the budget is used up */
    FL_EVICT_PLACES  /* its party has too many accounts */
};

/* `account` must be closed soon; called from inside the fl_account functions, once for each
 * account.
 */
typedef void (*fl_budget_evict_cb)(void *ctx, struct fl_account *account, enum fl_evict why);

struct fl_party {
    struct fl_party *next; /* of its bucket */
    size_t used;           /* by accounts that are not evicted */
    size_t leaving;        /* by those that are */
    unsigned n_accounts, n_known, n_calls;
    char name[FL_IDENTITY_NAME_MAX];
};

#define FL_BUDGET_BUCKETS 256

struct fl_budget {
    size_t limit;
    size_t share; /* a known account that holds less is never evicted */
    size_t used;
    size_t peak;
    size_t leaving;         /* share of `used` that evicted accounts still hold */
    size_t unknown;         /* share of unknown accounts, */
    size_t unknown_leaving; /* and of evicted unknown accounts */
    size_t n_known;         /* parties, and accounts of no party */
    /* Set by the owner after fl_budget_init(); 0: none. */
    size_t reserve;          /* only for known accounts */
    unsigned party_accounts; /* most accounts of a party */
    unsigned party_calls;    /* most open calls of a party */
    struct fl_party *parties[FL_BUDGET_BUCKETS];
    struct fl_list accounts; /* the newest first */
    fl_budget_evict_cb evict;
    void *ctx;
};

/* All zero is an account of no budget and without a limit. */
struct fl_account {
    struct fl_budget *budget;
    struct fl_list link; /* of the budget */
    void *owner;
    size_t limit;
    size_t used;
    size_t peak;
    bool leaving;
    unsigned n_calls;       /* open ones */
    unsigned vouched;       /* above 0: known */
    struct fl_party *party; /* NULL: none */
};

void fl_budget_init(struct fl_budget *budget, size_t limit, size_t share, fl_budget_evict_cb evict,
                    void *ctx);

/* `budget` may be NULL: only the account's own limit counts. */
void fl_account_open(struct fl_account *account, struct fl_budget *budget, size_t limit,
                     void *owner);
/* Gives back what is still charged. */
void fl_account_close(struct fl_account *account);
/*
 * Set the name of the account's peer, once, before fl_account_vouch(). May evict the oldest account
 * of that name, this one included. When out of memory the account joins no party.
 */
void fl_account_join(struct fl_account *account, const char *name);

/*
 * Charge `n` bytes. FL_ELIMIT: more than the account may ever hold; FL_ENOMEM: the budget is used
 * up. On an error nothing is charged. An unknown account, and a known one above its fair share,
 * never gets more than what is free.
 */
FL_MUST_CHECK int fl_account_take(struct fl_account *account, size_t n);
/* Charge bytes that are allocated already; above the budget, other accounts or this one are
 * evicted. */
void fl_account_add(struct fl_account *account, size_t n);
void fl_account_give(struct fl_account *account, size_t n);
/* The smaller remainder of half the budget and half the account's limit. Optional memory should
 * stay below it. */
size_t fl_account_spare(const struct fl_account *account);
/* False: the account's party has `party_calls` open calls already. */
bool fl_account_may_call(const struct fl_account *account);
/* A call of the account begins or ends; calls are paired. */
void fl_account_count_call(struct fl_account *account, bool begins);
/* The peer was authenticated (`known`), or no longer is; calls are paired. */
void fl_account_vouch(struct fl_account *account, bool known);

#endif
