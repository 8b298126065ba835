/* What `evaluation` of a server must not say of its program: each value with file, line, key and
 * what was expected. */
#include "server/conf/server_conf.h"
#include "tests/lib/conf_refused.h"
#include "tests/lib/suites.h"

static const char head[] = "federation: x\n"
                           "state_dir: s\n"
                           "insecure: yes\n"
                           "listen: [\"unix:/tmp/x.sock\"]\n"
                           "model: {preset: mlp200}\n"
                           "evaluation:\n"
                           "  ";

static const struct refused rows[] = {
    {"command_limit: 99ms", "key 'evaluation.command_limit': expected a duration such as 10s, "
                            "100ms to 168h, found '99ms'"},
    {"command_start_limit: 99ms", "key 'evaluation.command_start_limit': expected a duration such "
                                  "as 10s, 100ms to 168h, found '99ms'"},
    {"command_limit: 169h", "key 'evaluation.command_limit': expected a duration such as 10s, "
                            "100ms to 168h, found '169h'"},
    {"command_start_limit: 169h", "key 'evaluation.command_start_limit': expected a duration such "
                                  "as 10s, 100ms to 168h, found '169h'"},
    {"command_limit: soon", "key 'evaluation.command_limit': expected a duration such as 10s, "
                            "100ms to 168h, found 'soon'"},
    {"command_start_limit: soon", "key 'evaluation.command_start_limit': expected a duration such "
                                  "as 10s, 100ms to 168h, found 'soon'"},
    {"command_limit: 5", "key 'evaluation.command_limit': expected a duration such as 10s, 100ms "
                         "to 168h, found '5': add a unit (us, ms, s, m, h, d)"},
    {"command_memory: -1", "key 'evaluation.command_memory': expected a size such as 64K, 8M or "
                           "1G, 0 to 1074218750K, found '-1'"},
    {"command_memory: 2TB", "key 'evaluation.command_memory': expected a size such as 64K, 8M or "
                            "1G, 0 to 1074218750K, found '2TB'"},
    {"command_memory: lots", "key 'evaluation.command_memory': expected a size such as 64K, 8M or "
                             "1G, 0 to 1074218750K, found 'lots'"},
    {"command: {a: b}", "key 'evaluation.command': expected a list of texts, found a section"},
    {"command: [[a]]", "key 'evaluation.command[0]': expected a text, found a list"},
    {"command: \"\"",
     "key 'evaluation.command': expected a program and its arguments, found an empty name"},
    {"command: [\"\", x]",
     "key 'evaluation.command': expected a program and its arguments, found an empty name"},
    {"command: [x, --task, \"{task}\"]",
     "key 'evaluation.command': a persistent program has no task file for '{task}': it receives "
     "its tasks in messages (docs/trainers.md)"},
    {"comand: [x]", "key 'evaluation': unknown key 'comand', did you mean 'command'?"},
};
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

TEST_EACH(a_value_of_evaluation_command_that_cannot_be_is_told_with_what_was_expected, N_ROWS)
{
    char path[FOLDER_PATH + 32];
    struct fl_server_conf *conf = NULL;
    struct fl_err err = {0};

    refused_write(head, rows[_i].line, path);
    ck_assert_msg(fl_server_conf_load(path, NULL, &conf, &err) == FL_ECONF, "%s", rows[_i].line);
    refused_says(head, &rows[_i], path, &err);
}

static const char robust_head[] = "federation: f\n"
                                  "state_dir: /tmp/x\n"
                                  "listen: [\"unix:/tmp/x.sock\"]\n"
                                  "model: {preset: mlp200}\n"
                                  "algorithm: fedavg\n";

static const struct refused robust_rows[] = {
    {"strategy: {robust: {policy: krum, f: 2}}",
     "some.yaml:6: key 'strategy.robust': robust 'krum' with these options needs 7 senders of "
     "every layer: "
     "set round.min_responders to 7 or more, so that no round ends with fewer"},
    {"round: {min_responders: 4}\nstrategy: {robust: {policy: median, f: 2}}",
     "some.yaml:7: key 'strategy.robust': robust 'median' with these options needs 5 senders of "
     "every layer"},
    {"round: {min_responders: 5}\nstrategy: {robust: {policy: median, f: 1, mix: bucketing}}",
     "some.yaml:7: key 'strategy.robust': robust mix 'bucketing' draws its buckets from the seed"},
};

static void expect_refused(const struct refused *row)
{
    char path[FOLDER_PATH + 32];
    struct fl_server_conf *conf = NULL;
    struct fl_err err = {0};

    refused_write(robust_head, row->line, path);
    ck_assert_int_eq(fl_server_conf_load(path, NULL, &conf, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, row->says) != NULL, "%s", err.msg);
}

static const struct refused root_rows[] = {
    {"strategy: {robust: fltrust}",
     "some.yaml:6: key 'strategy.robust': robust 'fltrust' trains on the server, which has no "
     "labelled data: set evaluation.data to a folder with a test set"},
    {"evaluation: {data: d, command: [python3, evaluate.py]}\nstrategy: {robust: fltrust}",
     "some.yaml:7: key 'strategy.robust': robust 'fltrust' takes its samples from "
     "evaluation.data, and the program of evaluation.command would evaluate on them"},
    {"evaluation: {data: d}\nstrategy: {robust: {policy: fltrust, f: 1}}",
     "some.yaml:7: key 'strategy.robust': unknown key 'f', known: samples, steps, report"},
    {"evaluation: {data: d}\nstrategy: {robust: {policy: fltrust, samples: 0}}",
     "some.yaml:7: key 'strategy.robust.samples': expected a whole number"},
};

TEST_EACH(a_rule_that_trains_on_the_server_is_refused_without_what_it_needs, 4)
{
    expect_refused(&root_rows[_i]);
}

TEST(a_rule_that_trains_on_the_server_needs_all_tensors_of_the_model)
{
    static const struct refused row = {
        "model: {preset: vgg9_bn, norm: local}\nevaluation: {data: d}\n"
        "strategy: {robust: fltrust}",
        "some.yaml:7: key 'strategy.robust': robust 'fltrust' trains on the server, which has only "
        "the first values of what stays on the clients (model.norm: local, model.local, or the "
        "head of "
        "personal 'head')"};
    static const char plain_head[] = "federation: f\nstate_dir: /tmp/x\n"
                                     "listen: [\"unix:/tmp/x.sock\"]\nalgorithm: fedavg\n";
    char path[FOLDER_PATH + 32];
    struct fl_server_conf *conf = NULL;
    struct fl_err err = {0};

    refused_write(plain_head, row.line, path);
    ck_assert_int_eq(fl_server_conf_load(path, NULL, &conf, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, row.says) != NULL, "%s", err.msg);
}

TEST_EACH(a_robust_rule_that_cannot_hold_is_refused_with_the_count_and_the_way_out, 3)
{
    expect_refused(&robust_rows[_i]);
}

static const struct refused head_rows[] = {
    {"strategy: {personal: {policy: head, layers: [fc3, conv9]}}",
     "some.yaml:6: key 'strategy.personal.layers[1]': 'conv9' matches none of the 3 layers; the "
     "last is 'fc3'"},
    {"strategy: {personal: {policy: head, layers: conv9}}",
     "some.yaml:6: key 'strategy.personal.layers': 'conv9' matches none of the 3 layers"},
    {"strategy: {personal: {policy: head, last: 3}}",
     "some.yaml:6: key 'strategy.personal.last': all of the 3 layers would be the head, which "
     "stays on the clients: expected at least one layer for the body"},
    {"strategy: {personal: {policy: head, layers: fc3, last: 1}}",
     "personal 'head': expected either layers or last, found both"},
    {"strategy: {solver: pfedme, personal: {policy: head, epochs: 2}}",
     "personal 'head' with epochs trains the head and the body one after the other, and solver "
     "'pfedme' moves the whole model within each of its steps: set epochs to 0, or choose solver "
     "'sgd' or 'prox'"},
    {"evaluation: {data: d}\nstrategy: {personal: head, robust: fltrust}",
     "some.yaml:7: key 'strategy.robust': robust 'fltrust' trains on the server, which has only "
     "the first values of what stays on the clients"},
};

TEST_EACH(a_head_that_cannot_be_is_refused_at_its_key, 6)
{
    expect_refused(&head_rows[_i]);
}

/* None of the keys of the head is in the file: the message names what chose it. */
TEST(a_head_by_default_that_leaves_no_body_is_refused_at_what_chose_it)
{
    static const char one_layer[] = "federation: f\nstate_dir: /tmp/x\n"
                                    "listen: [\"unix:/tmp/x.sock\"]\n"
                                    "model: {input: [4], layers: [dense 2]}\n";
    static const struct refused bodiless[] = {
        {"algorithm: fedrep",
         "some.yaml:5: key 'algorithm': all of the 1 layers would be the head"},
        {"strategy: {personal: head}",
         "some.yaml:5: key 'strategy.personal': all of the 1 layers would be the head"},
        {"strategy: {personal: {policy: head, epochs: 1}}",
         "some.yaml:5: key 'strategy.personal': all of the 1 layers would be the head"},
    };
    size_t i;

    for (i = 0; i < sizeof(bodiless) / sizeof(bodiless[0]); i++) {
        char path[FOLDER_PATH + 32];
        struct fl_server_conf *conf = NULL;
        struct fl_err err = {0};

        refused_write(one_layer, bodiless[i].line, path);
        ck_assert_int_eq(fl_server_conf_load(path, NULL, &conf, &err), FL_ECONF);
        ck_assert_msg(strstr(err.msg, bodiless[i].says) != NULL, "%s", err.msg);
    }
}

TEST(the_layers_of_the_head_stay_on_the_clients)
{
    static const struct {
        const char *line;
        const char *local; /* a digit for each layer */
    } cases[] = {
        {"strategy: {personal: head}", "001"},
        {"strategy: {personal: {policy: head, last: 2}}", "011"},
        {"strategy: {personal: {policy: head, layers: [fc1, \"*3\"], epochs: 4}}", "101"},
        {"strategy: {personal: trained}", "000"},
    };
    char path[FOLDER_PATH + 32];
    size_t i;
    size_t l;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fl_server_conf *conf = NULL;
        struct fl_err err = {0};

        refused_write(robust_head, cases[i].line, path);
        ck_assert_msg(fl_server_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
        for (l = 0; l < 3; l++) {
            const struct fl_unit *unit = fl_layout_unit(conf->layout, l);

            ck_assert_uint_eq(unit->n_local, cases[i].local[l] == '1' ? unit->count : 0);
        }
        fl_server_conf_free(conf);
    }
}

TEST(a_momentum_of_clients_that_cannot_hold_is_refused_at_its_key)
{
    static const struct refused row = {
        "training: {client_momentum: 0.5}\nstrategy: {solver: scaffold}",
        "some.yaml:6: key 'training.client_momentum': a momentum over rounds cannot be combined "
        "with solver 'scaffold'"};

    expect_refused(&row);
}

static const struct refused eligible_rows[] = {
    {"round: {eligible: {hours: [22:00-06:00, 22-06]}}",
     "some.yaml:6: key 'round.eligible.hours[1]': expected two times of the day such as "
     "22:00-06:00, 00:00 to 24:00, found '22-06'"},
    {"round:\n  eligible:\n    hours: 06:00-06:00",
     "some.yaml:8: key 'round.eligible.hours': expected two different times, found '06:00-06:00'"},
    {"round: {eligible: {utc_offset: Berlin}}",
     "some.yaml:6: key 'round.eligible.utc_offset': expected hours and minutes that local time is "
     "ahead of UTC, such as +01:00 or -03:30, at most 14:00, found 'Berlin'"},
    {"round: {eligible: {labels: [site]}}",
     "some.yaml:6: key 'round.eligible.labels': expected a mapping of text to text or to a list"},
    {"eligible: {labels: {site: a}}", "some.yaml:6: unknown key 'eligible'"},
    {"round: {eligible: {label: {site: a}}}",
     "some.yaml:6: key 'round.eligible': unknown key 'label', did you mean 'labels'?"},
};

TEST_EACH(a_schedule_that_cannot_be_read_is_refused_at_its_key, 6)
{
    expect_refused(&eligible_rows[_i]);
}

TEST(labels_and_hours_of_the_file_are_those_of_the_coordinator)
{
    char path[FOLDER_PATH + 32];
    struct fl_server_conf *conf = NULL;
    struct fl_coord_conf coord;
    struct fl_err err = {0};

    refused_write(robust_head,
                  "round: {eligible: {labels: {site: [berlin, paris]}, hours: [22:00-06:00], "
                  "utc_offset: +01:00}}",
                  path);
    ck_assert_msg(fl_server_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
    fl_server_conf_coord(conf, &coord);
    ck_assert_uint_eq(coord.eligible.n_labels, 2);
    ck_assert_str_eq(coord.eligible.labels[1].value, "paris");
    ck_assert_uint_eq(coord.eligible.n_hours, 1);
    ck_assert_uint_eq(coord.eligible.hours[0].from, 22 * 60);
    ck_assert_uint_eq(coord.eligible.hours[0].to, 6 * 60);
    ck_assert_int_eq(coord.eligible.utc_offset, 60);
    fl_server_conf_free(conf);
}

static const char *const robust_allowed[] = {
    "round: {min_responders: 7}\nstrategy: {robust: {policy: krum, f: 2}}",
    "strategy: {robust: {policy: krum, f: 2, report: yes}}",
    "seed: 7351\nround: {min_responders: 5}\n"
    "strategy: {robust: {policy: median, f: 1, mix: bucketing}}",
    "evaluation: {data: d}\nstrategy: {robust: {policy: fltrust, samples: 50, steps: 3}}",
};

TEST_EACH(a_robust_rule_with_enough_responders_or_that_only_reports_is_read, 4)
{
    char path[FOLDER_PATH + 32];
    struct fl_server_conf *conf = NULL;
    struct fl_err err = {0};

    refused_write(robust_head, robust_allowed[_i], path);
    ck_assert_msg(fl_server_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
    fl_server_conf_free(conf);
}

TEST(a_share_cap_below_the_fair_share_is_refused)
{
    static const struct refused row = {
        "round: {share_cap: 0.9}",
        "some.yaml:6: key 'round.share_cap': expected 0 (no bound) or a number of at least 1, a "
        "client's fair share, found 0.9"};

    expect_refused(&row);
}

TEST_EACH(share_cap_is_1_and_a_half_unless_set, 3)
{
    static const char *const lines[] = {"round: {}", "round: {share_cap: 0}",
                                        "round: {share_cap: 1}"};
    static const double values[] = {1.5, 0, 1};
    struct fl_coord_conf coord;
    char path[FOLDER_PATH + 32];
    struct fl_server_conf *conf = NULL;
    struct fl_err err = {0};

    refused_write(robust_head, lines[_i], path);
    ck_assert_msg(fl_server_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
    fl_server_conf_coord(conf, &coord);
    ck_assert_double_eq(coord.share_cap, values[_i]);
    fl_server_conf_free(conf);
}

TEST(what_may_be_said_of_the_program_is_read)
{
    char path[FOLDER_PATH + 32];
    struct fl_server_conf *conf = NULL;
    struct fl_err err = {0};

    refused_write(head,
                  "command: [python3, evaluate.py]\n  command_limit: 168h\n"
                  "  command_start_limit: 100ms\n  command_memory: 2G\n  data: d",
                  path);
    ck_assert_msg(fl_server_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(conf->evaluation->command.n, 2);
    ck_assert_str_eq(conf->evaluation->command.list[1], "evaluate.py");
    ck_assert_uint_eq(conf->evaluation->command_limit_ms, 168 * UINT64_C(3600000));
    ck_assert_uint_eq(conf->evaluation->command_start_limit_ms, 100);
    ck_assert_uint_eq(conf->evaluation->command_memory, UINT64_C(2) << 30);
    fl_server_conf_free(conf);
}

/* tests/client/core/test_session_link.c shows that a minute without traffic never passes then. */
TEST(the_heartbeat_is_10_s_unless_set)
{
    char path[FOLDER_PATH + 32];
    struct fl_server_conf *conf = NULL;
    struct fl_err err = {0};

    refused_write(robust_head, "round: {}", path);
    ck_assert_msg(fl_server_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(conf->main->heartbeat_ms, 10000);
    fl_server_conf_free(conf);
}

static const struct refused metric_rows[] = {
    {"evaluation: {data: d, metrics: [macro_f1, macro_f1]}",
     "some.yaml:6: key 'evaluation.metrics': metric 'macro_f1' is listed twice"},
    {"evaluation: {data: d, metrics: [f1]}",
     "some.yaml:6: key 'evaluation.metrics': unknown metric 'f1'; expected macro_f1, "
     "class_accuracy, worst_class or auc, of values mae or mse"},
    {"evaluation: {data: d, metrics: [mae]}",
     "some.yaml:6: key 'evaluation.metrics': the network predicts classes: expected macro_f1, "
     "class_accuracy, worst_class or auc; mae and mse are of values (loss: mse or mae)"},
    {"evaluation: {data: d, metrics: auc}",
     "some.yaml:6: key 'evaluation.metrics': metric 'auc' needs a model of 2 classes, and this one "
     "has 10; use 'macro_f1'"},
};

TEST_EACH(a_metric_that_cannot_be_is_refused_at_its_key, 4)
{
    expect_refused(&metric_rows[_i]);
}
