/* fl-sim new: writes an experiment to start from, and a training script for it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/str.h"
#include "libfl/program/script_templates.h"
#include "libfl/program/template.h"
#include "tools/fl_sim/experiment_templates.h"
#include "tools/fl_sim/fl_sim.h"

#define COMMAND "new"

static const struct fl_arg rows[] = {
    FL_ARG("trainer", '\0', "KIND", 't',
           "builtin (the default): the engine of fl, configured in the file; pytorch or numpy: a "
           "script NAME.py, which is a client of a real federation as it is"),
    FL_ARG("help", 'h', NULL, 'h', "print this and exit"),
    {.name = NULL}};

static const char help_before[] =
    "Usage: fl-sim new [OPTION]... NAME\n\n"
    "Write NAME.yaml, a small experiment to start from, into the current folder, and print the\n"
    "next commands. It runs as it is, in seconds. Existing files are never replaced.\n";
static const char help_after[] = "\nExit status: 0 done, 1 failed, 2 wrong usage.";

struct new_kind {
    const char *name;
    const char *const *experiment;
    const char *const *script; /* NULL: none */
};

static const struct new_kind kinds[] = {{"builtin", fl_template_builtin, NULL},
                                        {"numpy", fl_template_program, fl_template_numpy},
                                        {"pytorch", fl_template_program, fl_template_pytorch}};

static const struct new_kind *new_find_kind(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* An existing experiment is found before the script is written. */
static int new_write(const struct new_kind *kind, const char *name, const char *yaml,
                     const char *script, struct fl_err *err)
{
    struct stat st;
    int rv;

    if (kind->script == NULL) {
        return fl_template_write(kind->experiment, yaml, name, err);
    }
    if (lstat(yaml, &st) == 0) {
        return fl_err_set(err, FL_EEXIST, "cannot write '%s': %s: choose another name", yaml,
                          strerror(EEXIST));
    }
    rv = fl_template_write(kind->script, script, NULL, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_template_write(kind->experiment, yaml, name, err);
    if (rv != FL_OK) {
        (void)unlink(script);
    }
    return rv;
}

static void new_say_next(const struct new_kind *kind, const char *name)
{
    if (kind->script == NULL) {
        (void)printf("wrote %s.yaml. Next:\n\n", name);
    } else {
        (void)printf("wrote %s.yaml and %s.py. Next:\n\n"
                     "  python3 -m fl_trainer save %s.py %s.safetensors    # the first model\n",
                     name, name, name, name);
    }
    (void)printf("  fl-sim run %s.yaml\n"
                 "  fl-sim table %s.results\n"
                 "  fl-sim plot %s.results\n\n"
                 "Then change the lines that say CHANGE.\n",
                 name, name, name);
}

int cmd_new(int argc, char **argv)
{
    struct fl_args args = {.program = "fl-sim " COMMAND, .rows = rows, .argc = argc, .argv = argv};
    const struct new_kind *kind = &kinds[0];
    struct fl_err err = {0};
    char yaml[256];
    char script[256];
    const char *name;
    size_t len;
    int rv;

    while (command_next(&args, help_before, help_after) != FL_ARGS_END) {
        kind = new_find_kind(args.value);
        if (kind == NULL) {
            return usage_error(COMMAND, "--trainer: expected builtin, numpy or pytorch, found '%s'",
                               args.value);
        }
    }
    if (args.n_operands != 1) {
        return usage_error(COMMAND, args.n_operands == 0 ? "expected the name of the experiment"
                                                         : "expected one name, found more");
    }
    name = argv[1];
    len = strlen(name);
    if (!fl_name_valid(name) || (len > 5 && strcmp(name + len - 5, ".yaml") == 0)) {
        return usage_error(COMMAND,
                           "expected a name of 1 to 127 of A-Z a-z 0-9 . _ -, without .yaml, "
                           "found '%s'",
                           name);
    }
    (void)snprintf(yaml, sizeof(yaml), "%s.yaml", name);
    (void)snprintf(script, sizeof(script), "%s.py", name);
    if (kind->script != NULL && fl_template_hides_package(script)) {
        return usage_error(COMMAND,
                           "'%s' would hide the package of that name from the script: choose "
                           "another name",
                           script);
    }
    rv = new_write(kind, name, yaml, script, &err);
    if (rv != FL_OK) {
        return command_end(COMMAND, rv, &err);
    }
    new_say_next(kind, name);
    return 0;
}
