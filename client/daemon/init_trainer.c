#include "client/daemon/init_trainer.h"

#include <stdio.h>
#include <string.h>

#include "client/daemon/clientd_exit.h"
#include "libfl/base/fs.h"
#include "libfl/program/script_templates.h"
#include "libfl/program/template.h"

#define FIRST_NAME "trainer.py"

static void say_next(const char *path)
{
    char whole[4096];

    if (fl_fs_absolute(path, whole, sizeof(whole), NULL) != FL_OK) {
        (void)snprintf(whole, sizeof(whole), "%s", path);
    }
    (void)printf("wrote %s. Put your data and your model where it says CHANGE. Then:\n"
                 "\n"
                 "1. python3 %s     # trains once, alone\n"
                 "   python3 -m fl_trainer save %s first.safetensors\n"
                 "   # for the server, as  model: {file: first.safetensors}\n"
                 "2. in the client's configuration:\n"
                 "     trainer: command\n"
                 "     command: {program: [/usr/bin/python3, %s], persistent: yes}\n"
                 "3. fl-clientd --try-trainer CONFIG.yaml --model first.safetensors\n",
                 path, path, path, whole);
}

int fl_init_trainer(const char *kind, const char *path)
{
    const char *const *lines = NULL;
    struct fl_err err = {0};

    if (strcmp(kind, "pytorch") == 0) {
        lines = fl_template_pytorch;
    } else if (strcmp(kind, "numpy") == 0) {
        lines = fl_template_numpy;
    } else {
        (void)fprintf(stderr, "fl-clientd: --init-trainer: expected pytorch or numpy, found '%s'\n",
                      kind);
        return FL_EXIT_USAGE;
    }
    path = path != NULL ? path : FIRST_NAME;
    if (fl_template_hides_package(path)) {
        (void)fprintf(stderr,
                      "fl-clientd: '%s' would hide the package of that name from the script: "
                      "choose another file name\n",
                      path);
        return FL_EXIT_USAGE;
    }
    if (fl_template_write(lines, path, NULL, &err) != FL_OK) {
        (void)fprintf(stderr, "fl-clientd: %s\n", err.msg);
        return FL_EXIT_FAILURE;
    }
    say_next(path);
    return fflush(stdout) == 0 ? FL_EXIT_OK : FL_EXIT_FAILURE;
}
