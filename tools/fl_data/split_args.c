/*
 * The command line of fl-data split: the options of all methods, their help, and the checks that an
 * option belongs to the chosen method. Main thread. Reads no data: split_cmd.c does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/fl_data/split_cmd.h"

#define MAX_OPTIONS  32
#define HELP_SIZE    200
#define N_SPLIT_ARGS 12
#define N_COMMON     (N_SPLIT_ARGS + N_INPUT_ARGS) /* options of all methods */

/* The options of all methods as arguments, each name once. */
struct method_args {
    const struct fl_partition_option *options[MAX_OPTIONS];
    const char *texts[MAX_OPTIONS];
    char helps[MAX_OPTIONS][HELP_SIZE];
    size_t n;
};

static const char *const value_names[] = {
    [FL_PARTITION_COUNT] = "N", [FL_PARTITION_REAL] = "X", [FL_PARTITION_CHOICE] = "WHAT"};

static const char summary[] =
    "Usage: fl-data split --input DIR --output DIR --clients N [--method METHOD] [OPTION]...\n"
    "\n"
    "Share the train part of a data set (see 'fl-data inspect' for the formats) out\n"
    "among N clients. The output has a folder per client, client-000 and so on, with\n"
    "train-x.npy and train-y.npy (and test-x.npy, test-y.npy with --test-share), a folder\n"
    "server with the test part of the input when it has one (after --pool yes: the test\n"
    "samples of all clients), and split.json, which says how it was made. Features keep\n"
    "their type (uint8 or float32) and have shape (n, channels, height, width) or\n"
    "(n, features); labels are int32. The same seed gives the same split everywhere. The\n"
    "output appears when it is complete.\n"
    "\n"
    "--standardise writes norm.npy into every folder, which readers apply; the samples stay\n"
    "as they are. pixel: (x - mean) / (deviation + 0.001) for each value of a sample, over\n"
    "the samples that are shared out. cifar: the usual numbers for each colour.\n"
    "\n"
    "--noise-share replaces labels at random: for each chosen client that share of its\n"
    "training labels, each by one of the other classes. Test parts keep their labels.\n"
    "split.json has the number of replaced labels of each client.\n"
    "\n"
    "Pictures, texts and tables are read as by 'fl-data convert', with its options; schema.json "
    "in\n"
    "every folder says how texts became numbers.\n"
    "\n"
    "Methods:\n";

/* "method: what it is (default)", for a choice with what can be chosen. */
static void describe_option(const struct fl_partition_ops *ops,
                            const struct fl_partition_option *option, char out[HELP_SIZE])
{
    size_t used = (size_t)snprintf(out, HELP_SIZE, "%s: %s", ops->name, option->help);
    size_t i;

    FL_REQUIRE(used < HELP_SIZE);
    if (option->type != FL_PARTITION_CHOICE) {
        (void)snprintf(out + used, HELP_SIZE - used, " (%.10g)", option->def);
        return;
    }
    for (i = 0; option->choices[i] != NULL && used < HELP_SIZE; i++) {
        used += (size_t)snprintf(out + used, HELP_SIZE - used, "%s%s", i == 0 ? "; " : " or ",
                                 option->choices[i]);
    }
    if (used < HELP_SIZE) {
        (void)snprintf(out + used, HELP_SIZE - used, " (%s)", option->choices[(size_t)option->def]);
    }
}

/* The method's own option of that name, with its own range; options of one name are one argument.
 */
static const struct fl_partition_option *split_method_option(const struct fl_partition_ops *ops,
                                                             const char *name)
{
    const struct fl_partition_option *option;

    for (option = ops->options; option->name != NULL; option++) {
        if (strcmp(option->name, name) == 0) {
            return option;
        }
    }
    return NULL;
}

static bool set_method_args(struct split *s, const struct method_args *m)
{
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < m->n; i++) {
        const struct fl_partition_option *option;

        if (m->texts[i] == NULL) {
            continue;
        }
        option = split_method_option(s->conf.method, m->options[i]->name);
        if (option == NULL) {
            (void)fl_data_usage_error("split", "--%s does not apply to method '%s'",
                                      m->options[i]->name, s->conf.method->name);
            return false;
        }
        if (fl_partition_option_set(option, &s->conf.partition, m->texts[i], &err) != FL_OK) {
            (void)fl_data_usage_error("split", "--%s", err.msg);
            return false;
        }
    }
    return true;
}

static bool split_find_method(struct split *s, const char *name)
{
    char known[256] = "";
    size_t used = 0;
    size_t i;

    const struct fl_partition_ops *method = fl_partition_find(name != NULL ? name : "iid");

    if (method != NULL) {
        fl_split_conf_method(&s->conf, method);
        return true;
    }
    for (i = 0; fl_partition_at(i) != NULL && used < sizeof(known); i++) {
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "",
                                 fl_partition_at(i)->name);
    }
    (void)fl_data_usage_error("split", "unknown method '%s'; known: %s", name, known);
    return false;
}

/* The index of `text` in `words`, a NULL-terminated list; `ret` is unchanged when `text` is NULL.
 */
static bool split_find_word(const char *name, const char *text, const char *const *words, int *ret)
{
    char known[128] = "";
    size_t used = 0;
    int i;

    if (text == NULL) {
        return true;
    }
    for (i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            *ret = i;
            return true;
        }
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "",
                                 words[i]);
        FL_REQUIRE(used < sizeof(known));
    }
    (void)fl_data_usage_error("split", "--%s: expected one of %s, found '%s'", name, known, text);
    return false;
}

/* The texts of the options that belong to no method. */
struct texts {
    const char *clients, *method, *seed, *share, *pool, *standardise, *crop;
    const char *noise_share, *noise_clients;
};

static bool split_take_texts(struct split *s, const struct texts *t, const struct method_args *m)
{
    struct fl_split_conf *conf = &s->conf;
    uint64_t n_clients = 0;
    int pool = FL_POOL_AS_METHOD;
    int standard = FL_STANDARDISE_AS_INPUT;

    if (s->input == NULL || s->output == NULL || t->clients == NULL) {
        (void)fl_data_usage_error("split", "--%s is required",
                                  s->input == NULL ? "input"
                                                   : (s->output == NULL ? "output" : "clients"));
        return false;
    }
    if (t->noise_clients != NULL && t->noise_share == NULL) {
        (void)fl_data_usage_error("split", "--noise-clients needs --noise-share");
        return false;
    }
    fl_split_conf_init(conf);
    if (!split_find_method(s, t->method) || !set_method_args(s, m) ||
        !arg_count("split", "clients", t->clients, 1, FL_PARTITION_MAX_CLIENTS, &n_clients) ||
        !arg_count("split", "seed", t->seed, 0, INT64_MAX, &conf->partition.seed) ||
        !arg_real("split", "test-share", t->share, 0.0, FL_SPLIT_MAX_SHARE, &conf->test_share) ||
        !arg_real("split", "noise-share", t->noise_share, 0.0, 1.0, &conf->noise_share) ||
        !arg_real("split", "noise-clients", t->noise_clients, 0.0, 1.0, &conf->noise_clients) ||
        !arg_count("split", "crop", t->crop, 1, FL_SPLIT_MAX_CROP, &conf->crop) ||
        !split_find_word("pool", t->pool, fl_split_pools, &pool) ||
        !split_find_word("standardise", t->standardise, fl_split_standards, &standard) ||
        !input_conf("split", &s->reading, &s->import))
    {
        return false;
    }
    conf->partition.n_clients = (size_t)n_clients;
    conf->pool = (enum fl_split_pool)pool;
    conf->standardise = (enum fl_split_standardise)standard;
    return true;
}

bool split_parse(struct split *s, int argc, char **argv, int *ret_status)
{
    const struct fl_partition_ops *ops;
    const struct fl_partition_option *option;
    struct texts t = {.clients = NULL};
    struct method_args m;
    char text[sizeof(summary) + 1024];
    size_t used;
    struct fl_arg args[N_COMMON + MAX_OPTIONS] = {
        {.name = "input", .value = "DIR", .help = "the data set", .text = &s->input},
        {.name = "output", .value = "DIR", .help = "the folder to create", .text = &s->output},
        {.name = "clients", .value = "N", .help = "number of clients", .text = &t.clients},
        {.name = "method", .value = "METHOD", .help = "how to share out (iid)", .text = &t.method},
        {.name = "seed", .value = "N", .help = "seed of every random choice (0)", .text = &t.seed},
        {.name = "test-share",
         .value = "P",
         .help = "share of each client's samples kept for its own test (0; pairs: 0.25)",
         .text = &t.share},
        {.name = "pool",
         .value = "WHAT",
         .help = "share out the test part of the input too: yes, no or as-method (no; pairs: yes)",
         .text = &t.pool},
        {.name = "standardise",
         .value = "WHAT",
         .help = "none, pixel, cifar, see above, or as-input, what it has (as-input)",
         .text = &t.standardise},
        {.name = "crop",
         .value = "N",
         .help = "keep the middle N x N of every picture",
         .text = &t.crop},
        {.name = "noise-share",
         .value = "P",
         .help = "share of a client's training labels replaced by another class (0)",
         .text = &t.noise_share},
        {.name = "noise-clients",
         .value = "P",
         .help = "share of the clients to which --noise-share applies (1)",
         .text = &t.noise_clients},
        {.name = "force", .help = "replace an output folder that is not empty", .flag = &s->force},
    };
    size_t i;

    used = (size_t)snprintf(text, sizeof(text), "%s", summary);
    for (i = 0; fl_partition_at(i) != NULL && used < sizeof(text); i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "  %-15s %s\n",
                                 fl_partition_at(i)->name, fl_partition_at(i)->help);
    }
    input_rows(&s->reading, args + N_SPLIT_ARGS);
    m = (struct method_args){.n = 0};
    for (i = 0; (ops = fl_partition_at(i)) != NULL; i++) {
        for (option = ops->options; option->name != NULL; option++) {
            FL_REQUIRE(m.n < MAX_OPTIONS);
            describe_option(ops, option, m.helps[m.n]);
            m.options[m.n++] = option;
        }
    }
    for (i = 0; i < m.n; i++) {
        args[N_COMMON + i] = (struct fl_arg){.name = m.options[i]->name,
                                             .value = value_names[m.options[i]->type],
                                             .help = m.helps[i],
                                             .text = &m.texts[i]};
    }
    if (!args_parse(argc, argv, text, args, N_COMMON + m.n, NULL, ret_status)) {
        return false;
    }
    *ret_status = EXIT_USAGE;
    return split_take_texts(s, &t, &m);
}
