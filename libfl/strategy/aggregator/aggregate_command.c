/*
 * aggregate: command (a program of the operator; docs/trainers.md#a-strategy-in-python)
 *
 *     theta_l += the program's step, of the updates of all clients of the round
 *
 * The program runs outside of the pass: the caller starts it and hands it the updates
 * (fl_agg_job.whole, server/work/aggregation_program.h). What it keeps between rounds is bytes,
 * which belong to the checkpoint of their round; it has no state vectors.
 */
#include <string.h>

#include "libfl/strategy/aggregator/aggregate_impl.h"

struct options {
    enum fl_agg_weights weights;
    struct fl_opt_texts program;
    uint64_t limit_ms, start_limit_ms;
    uint64_t memory, state_limit;
};

static void command_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    (void)o;
    (void)memcpy(block->step, block->made, block->n * sizeof(*block->step));
}

static enum fl_agg_weights command_weights(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->weights;
}

static struct fl_agg_program command_program(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return (struct fl_agg_program){.argv = v->program.list,
                                   .limit_ms = v->limit_ms,
                                   .start_limit_ms = v->start_limit_ms,
                                   .memory = v->memory,
                                   .state_limit = v->state_limit};
}

static int command_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);

    return v->program.n > 0 && v->program.list[0][0] != '\0'
               ? FL_OK
               : fl_err_set(err, FL_ECONF,
                            "aggregate 'command' needs a program, with its arguments: "
                            "program: [/usr/bin/python3, strategy.py]");
}

static const struct fl_opt_spec command_options[] = {
    {FL_OPT(struct options, STRING_LIST, program), .flags = FL_OPT_REQUIRED,
     .help = "Program and arguments that make the server's step from the updates of a round."},
    {FL_OPT(struct options, ENUM, weights), .def = "auto", .choices = fl__agg_weights,
     .help = "How updates are weighted in the mean that the program gets beside them: as with "
             "aggregate 'mean'."},
    {FL_OPT(struct options, DURATION, limit), .flags = FL_POLICY_BOUND, .def = "5m", .max = 864e5,
     .help = "Time limit of one round of the program: after it the program is ended and the "
             "aggregation tried again; 0: no limit."},
    {FL_OPT(struct options, DURATION, start_limit), .flags = FL_POLICY_BOUND, .def = "1m",
     .max = 864e5, .help = "Time limit of its start, and of its answer to the model; 0: no limit."},
    {FL_OPT(struct options, BYTES, memory), .flags = FL_POLICY_BOUND, .def = "0", .max = 1e15,
     .help = "Limit of resident memory of the program and its children; 0: no limit."},
    {FL_OPT(struct options, BYTES, state_limit), .flags = FL_POLICY_BOUND, .def = "16MiB",
     .min = 4096, .max = 4e9,
     .help = "Limit of the state that the program keeps between rounds, which every checkpoint "
             "contains."},
    FL_OPT_END_OF(struct options),
};

const struct fl_aggregate_ops fl_aggregate_command = {
    .policy =
        {
            .name = "command",
            .help = "step of a program of yours, which gets the updates of all clients",
            .source = "ours",
            .options = command_options,
            .check = command_check,
        },
    .step = command_step,
    .weights = command_weights,
    .program = command_program,
};
