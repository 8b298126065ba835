/* What `command` of a client must not say: each value with file, line, key and what was expected.
 */
#include "client/conf/client_conf.h"
#include "tests/lib/conf_refused.h"
#include "tests/lib/suites.h"

/* clang-format off */
#define HEAD \
    "server: localhost:7800\n" \
    "name: a\n" \
    "state_dir: s\n" \
    "insecure: yes\n" \
    "trainer: command\n" \
    "command:\n" \
    "  "
/* clang-format on */

/* Beside `program: [x]`. */
static const struct refused rows[] = {
    {"persistent: maybe", "key 'command.persistent': expected yes or no, found 'maybe'"},
    {"persistent: 1", "key 'command.persistent': expected yes or no, found '1'"},
    {"start_limit: 99ms",
     "key 'command.start_limit': expected a duration such as 10s, 100ms to 24h, found '99ms'"},
    {"start_limit: 25h",
     "key 'command.start_limit': expected a duration such as 10s, 100ms to 24h, found '25h'"},
    {"start_limit: -1s",
     "key 'command.start_limit': expected a duration such as 10s, 100ms to 24h, found '-1s'"},
    {"start_limit: soon",
     "key 'command.start_limit': expected a duration such as 10s, 100ms to 24h, found 'soon'"},
    {"start_limit: 5", "key 'command.start_limit': expected a duration such as 10s, 100ms to 24h, "
                       "found '5': add a unit (us, ms, s, m, h, d)"},
    {"cancel_grace: 2h",
     "key 'command.cancel_grace': expected a duration such as 10s, 0s to 1h, found '2h'"},
    {"cancel_grace: -1s",
     "key 'command.cancel_grace': expected a duration such as 10s, 0s to 1h, found '-1s'"},
    {"cancel_grace: [1s]",
     "key 'command.cancel_grace': expected a duration such as 10s, 0s to 1h, found a list"},
    {"idle_exit: 8d",
     "key 'command.idle_exit': expected a duration such as 10s, 0s to 168h, found '8d'"},
    {"idle_exit: 169h",
     "key 'command.idle_exit': expected a duration such as 10s, 0s to 168h, found '169h'"},
    {"idle_exit: never",
     "key 'command.idle_exit': expected a duration such as 10s, 0s to 168h, found 'never'"},
    {"first_limit: 0s",
     "key 'command.first_limit': expected a duration such as 10s, 100ms to 168h, found '0s'"},
    {"first_limit: 169h",
     "key 'command.first_limit': expected a duration such as 10s, 100ms to 168h, found '169h'"},
    {"straggler_factor: -1",
     "key 'command.straggler_factor': expected a number, 0 to 1000000, found '-1'"},
    {"straggler_factor: 1e7",
     "key 'command.straggler_factor': expected a number, 0 to 1000000, found '1e7'"},
    {"straggler_factor: ten",
     "key 'command.straggler_factor': expected a number, 0 to 1000000, found 'ten'"},
    {"straggler_min: 169h",
     "key 'command.straggler_min': expected a duration such as 10s, 0s to 168h, found '169h'"},
    {"straggler_min: -2m",
     "key 'command.straggler_min': expected a duration such as 10s, 0s to 168h, found '-2m'"},
    {"time_limit: 50ms",
     "key 'command.time_limit': expected a duration such as 10s, 100ms to 168h, found '50ms'"},
    {"time_limit: 169h",
     "key 'command.time_limit': expected a duration such as 10s, 100ms to 168h, found '169h'"},
    {"memory_limit: -1", "key 'command.memory_limit': expected a size such as 64K, 8M or 1G, 0 to "
                         "1074218750K, found '-1'"},
    {"memory_limit: 2TB", "key 'command.memory_limit': expected a size such as 64K, 8M or 1G, 0 to "
                          "1074218750K, found '2TB'"},
    {"memory_limit: lots", "key 'command.memory_limit': expected a size such as 64K, 8M or 1G, 0 "
                           "to 1074218750K, found 'lots'"},
    {"memory_of: rss",
     "key 'command.memory_of': expected one of address_space, resident, found 'rss'"},
    {"memory_of: residnt", "key 'command.memory_of': expected one of address_space, resident, "
                           "found 'residnt', did you mean 'resident'?"},
    {"samples: 0", "key 'command.samples': expected a whole number, 1 to 1000000000000, found '0'"},
    {"samples: 1e13",
     "key 'command.samples': expected a whole number, 1 to 1000000000000, found '1e13'"},
    {"samples: many",
     "key 'command.samples': expected a whole number, 1 to 1000000000000, found 'many'"},
    {"environment: [A]",
     "key 'command.environment': expected a mapping of text to text, found a list"},
    {"environment: {A: [x]}", "key 'command.environment.A': expected a text, found a list"},
    {"environment: {A: }", "key 'command.environment.A': expected a text, found nothing"},
    {"environment: {OK: y, 1A: x}",
     "key 'command.environment': expected names of A-Z a-z 0-9 _ that do not begin with a digit, "
     "and not FL_TASK or FL_TRAINER_..., found '1A'"},
    {"environment: {OK: y, A-B: x}",
     "key 'command.environment': expected names of A-Z a-z 0-9 _ that do not begin with a digit, "
     "and not FL_TASK or FL_TRAINER_..., found 'A-B'"},
    {"environment: {OK: y, FL_TASK: x}",
     "key 'command.environment': expected names of A-Z a-z 0-9 _ that do not begin with a digit, "
     "and not FL_TASK or FL_TRAINER_..., found 'FL_TASK'"},
    {"environment: {OK: y, FL_TRAINER_SOCKET: x}",
     "key 'command.environment': expected names of A-Z a-z 0-9 _ that do not begin with a digit, "
     "and not FL_TASK or FL_TRAINER_..., found 'FL_TRAINER_SOCKET'"},
    {"persistnt: yes", "key 'command': unknown key 'persistnt', did you mean 'persistent'?"},
};
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

/* Beside `persistent: yes`. */
static const struct refused programs[] = {
    {"program: {a: b}", "key 'command.program': expected a list of texts, found a section"},
    {"program: []", "key 'command.program': trainer 'command' needs command.program"},
    {"program: [\"\"]", "key 'command.program': trainer 'command' needs command.program"},
    {"program: [x, \"{task}\"]",
     "key 'command.program': a persistent program ('command.persistent: yes') has no task file for "
     "'{task}': it receives its tasks in messages (docs/trainers.md)"},
    {"program: [x, \"--task={task}\"]",
     "key 'command.program': a persistent program ('command.persistent: yes') has no task file for "
     "'{task}': it receives its tasks in messages (docs/trainers.md)"},
};

#define N_PROGRAMS ((int)(sizeof(programs) / sizeof(programs[0])))

static void refused(const char *before, const struct refused *row)
{
    char path[FOLDER_PATH + 32];
    struct fl_client_conf *conf = NULL;
    struct fl_err err = {0};

    refused_write(before, row->line, path);
    ck_assert_msg(fl_client_conf_load(path, NULL, &conf, &err) == FL_ECONF, "%s", row->line);
    refused_says(before, row, path, &err);
}

TEST_EACH(a_value_of_command_that_cannot_be_is_told_with_what_was_expected, N_ROWS)
{
    refused(HEAD "program: [x]\n  ", &rows[_i]);
}

TEST_EACH(a_program_that_cannot_be_is_told, N_PROGRAMS)
{
    refused(HEAD "persistent: yes\n  ", &programs[_i]);
}

TEST(what_may_be_said_of_a_program_is_read)
{
    char path[FOLDER_PATH + 32];
    struct fl_client_conf *conf = NULL;
    struct fl_err err = {0};
    const struct fl_client_command *c;

    refused_write(
        HEAD "persistent: yes\n  ",
        "program: python3 # a text alone is a list of one\n"
        "  start_limit: 100ms\n  cancel_grace: 0s\n  idle_exit: 0s\n  first_limit: 168h\n"
        "  straggler_factor: 0\n  straggler_min: 0s\n  memory_limit: 1G\n  memory_of: resident\n"
        "  environment: {_A1: \"\", CUDA_VISIBLE_DEVICES: \"1,2\"}",
        path);
    ck_assert_msg(fl_client_conf_load(path, NULL, &conf, &err) == FL_OK, "%s", err.msg);
    c = conf->command;
    ck_assert_uint_eq(c->program.n, 1);
    ck_assert_str_eq(c->program.list[0], "python3");
    ck_assert(c->persistent && c->memory_of == FL_PROGRAM_RESIDENT_MEMORY);
    ck_assert_uint_eq(c->start_limit_ms, 100);
    ck_assert_uint_eq(c->cancel_grace_ms, 0);
    ck_assert_uint_eq(c->idle_exit_ms, 0);
    ck_assert_uint_eq(c->memory_limit, UINT64_C(1) << 30);
    ck_assert_uint_eq(c->environment.n, 2);
    ck_assert_str_eq(c->environment.list[1].value, "1,2");
    fl_client_conf_free(conf);
}
