#ifndef FL_BASE_BUDGET_H
#define FL_BASE_BUDGET_H

/*
 * One budget for the memory that peers make us hold: what they have not finished sending, have
 * not read, or keep alive by not reading. Every connection has an account; who holds something
 * for it charges the account and gives back when it is gone.
 *
 * An account has a limit of its own, and all together stay below the budget, but for the little
 * that known ones take while those that have to go still hold theirs. When it is used up, room is
 * made at the cost of peers that nobody has vouched for (unknown ones), the one that holds most
 * first; a known one goes only when it holds more than its fair share and no unknown one holds
 * anything. What goes is decided here, how it goes is the owner's (`evict`). A part of the budget,
 * `reserve`, is never given to unknown ones.
 *
 * Accounts of one name (fl_account_join()) are a party: they have one fair share together, and of
 * more than `party_accounts` the oldest goes. So a client gains nothing by more connections.
 *
 * Ownership: accounts lie in their owners, who open and close them. Threading: one loop. No
 * clock, no I/O.
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

/* `account` is to be closed soon; called from inside the fl_account functions, and once for each.
 */
typedef void (*fl_budget_evict_cb)(void *ctx, struct fl_account *account, enum fl_evict why);

struct fl_party {
    struct fl_party *next; /* of its bucket */
    size_t used;           /* by accounts that do not leave */
    unsigned n_accounts, n_known;
    char name[FL_IDENTITY_NAME_MAX];
};

#define FL_BUDGET_BUCKETS 256

struct fl_budget {
    size_t limit;
    size_t share; /* a known account that holds less than this never goes */
    size_t used;
    size_t peak;
    size_t leaving;         /* the part of `used` that evicted accounts still hold */
    size_t unknown;         /* the part that unknown accounts hold, */
    size_t unknown_leaving; /* and evicted ones of those */
    size_t n_known;         /* parties, and accounts of no party */
    /* Set by the owner after fl_budget_init(); 0: none. */
    size_t reserve;          /* only for known accounts */
    unsigned party_accounts; /* most accounts of a party */
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
 * The account's peer is `name`, for good; before it is authenticated. The oldest account of
 * that name may have to go, this one too. Without memory it stays alone.
 */
void fl_account_join(struct fl_account *account, const char *name);

/*
 * Charge `n` bytes. FL_ELIMIT: more than the account may ever hold, FL_ENOMEM: the budget is used
 * up; then nothing is charged. An unknown account is never given more than what is free.
 */
FL_MUST_CHECK int fl_account_take(struct fl_account *account, size_t n);
/* Charge what is there already; with the budget used up others have to go, or this one. */
void fl_account_add(struct fl_account *account, size_t n);
void fl_account_give(struct fl_account *account, size_t n);
/* What is left of half the budget and of half the account: more than that is taken only where
   nothing goes without it. */
size_t fl_account_spare(const struct fl_account *account);
/* Somebody vouches for the peer, or no longer does; calls come in pairs. */
void fl_account_vouch(struct fl_account *account, bool known);

#endif
