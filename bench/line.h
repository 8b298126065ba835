#ifndef FL_BENCH_LINE_H
#define FL_BENCH_LINE_H

/* The command line of a benchmark, and the median of what it measures. */

#include <stdlib.h>

#include "libfl/base/args.h"
#include "libfl/base/sorted.h"

/* Ends the program with its options and `prints`, what it prints: for --help on stdout and with 0,
 * else with 2. */
static inline FL_NORETURN void bench_usage(const struct fl_args *line, const char *prints,
                                           bool asked)
{
    FILE *out = asked ? stdout : stderr;

    (void)fprintf(out, "usage: %s [options]\n", line->program);
    fl_args_help(line->rows, out);
    (void)fputs(prints, out);
    exit(asked ? EXIT_SUCCESS : 2);
}

/* The next option, or FL_ARGS_END; --help ('h'), a wrong option and any operand end the program. */
static inline int bench_next(struct fl_args *line, const char *prints)
{
    int opt = fl_args_next(line);

    if (opt == 'h' || opt == FL_ARGS_WRONG || (opt == FL_ARGS_END && line->n_operands != 0)) {
        bench_usage(line, prints, opt == 'h');
    }
    return opt;
}

/* Of `n` values, above 0, which are put into order. */
static inline double bench_median(double *values, size_t n)
{
    fl_sort(values, n);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

#endif
