/*
 * fraction: listed (docs/algorithms.md#fractions)
 *
 *     gamma_t = fractions[i], i the last one with rounds[i] <= t
 *
 * Options: fractions; rounds: the first round of each, rising, the first of them 1. State: none.
 */
#include "libfl/base/str.h"
#include "libfl/strategy/selection/selection.h"

struct options {
    struct fl_opt_texts fractions;
    struct fl_opt_ints rounds;
};

static int listed_fraction(const struct options *v, size_t i, double *ret, struct fl_err *err)
{
    if (fl_str_to_double(v->fractions.list[i], ret) != FL_OK || !(*ret >= 0 && *ret <= 1)) {
        return fl_err_set(err, FL_ECONF,
                          "fractions: entry %zu is '%.32s', expected a number from 0 to 1", i + 1,
                          v->fractions.list[i]);
    }
    return FL_OK;
}

static double listed_fraction_at(const struct fl_options *o, uint64_t round)
{
    const struct options *v = fl_options_values(o);
    double fraction = 0;
    size_t i = 0;

    while (i + 1 < v->rounds.n && (uint64_t)v->rounds.list[i + 1] <= round) {
        i++;
    }
    FL_REQUIRE(listed_fraction(v, i, &fraction, NULL) == FL_OK); /* listed_check() */
    return fraction;
}

static int listed_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    double fraction;
    size_t i;

    if (v->fractions.n != v->rounds.n || v->rounds.n == 0) {
        return fl_err_set(err, FL_ECONF,
                          "expected as many fractions as rounds, at least one, found %zu and %zu",
                          v->fractions.n, v->rounds.n);
    }
    if (v->rounds.list[0] != 1) {
        return fl_err_set(err, FL_ECONF, "rounds: the first entry is %lld, expected 1",
                          (long long)v->rounds.list[0]);
    }
    for (i = 0; i < v->rounds.n; i++) {
        int rv = listed_fraction(v, i, &fraction, err);

        if (rv != FL_OK) {
            return rv;
        }
        if (i > 0 && v->rounds.list[i] <= v->rounds.list[i - 1]) {
            return fl_err_set(
                err, FL_ECONF, "rounds: entry %zu is %lld, expected more than the one before, %lld",
                i + 1, (long long)v->rounds.list[i], (long long)v->rounds.list[i - 1]);
        }
    }
    return FL_OK;
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, STRING_LIST, fractions), .def = "1",
     .help = "Shares of the clients, one after the other."},
    {FL_OPT(struct options, INT_LIST, rounds), .def = "1", .min = 1, .max = 1e12,
     .help = "The first round of each; the first of them is 1."},
    FL_OPT_END_OF(struct options),
};

const struct fl_fraction_ops fl_fraction_listed = {
    .policy =
        {
            .name = "listed",
            .help = "shares of the clients, each from a round on",
            .source = "ours",
            .options = options,
            .check = listed_check,
        },
    .at = listed_fraction_at,
};
