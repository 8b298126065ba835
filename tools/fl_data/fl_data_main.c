/* fl-data: makes, splits and inspects data sets. Selects the command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "tools/fl_data/fl_data.h"

static const struct command {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"split", "partition a data set among clients, one folder each", cmd_split},
    {"convert", "turn pictures, a text or a table into arrays", cmd_convert},
    {"synthetic", "make the federation Synthetic(alpha, beta)", cmd_synthetic},
    {"inspect", "print the contents of a folder, or of a file of a state folder", cmd_inspect},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* A write error of stdout, such as a full disk, is an error of the command. */
static int data_main_exit(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fputs("fl-data: cannot write to standard output\n", stderr);
        return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *names[N_COMMANDS];
    const char *near;
    size_t i;

    if (argc < 2) {
        return fl_data_usage_error("", "expected a command");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)puts("Usage: fl-data COMMAND [OPTION]...\n\nCommands:");
        for (i = 0; i < N_COMMANDS; i++) {
            (void)printf("  %-12s %s\n", commands[i].name, commands[i].help);
        }
        (void)puts("\n'fl-data COMMAND --help' lists the options of a command.\n"
                   "Exit status: 0 done, 1 failed, 2 wrong usage.");
        return data_main_exit(EXIT_SUCCESS);
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)puts("fl-data " PACKAGE_VERSION);
        return data_main_exit(EXIT_SUCCESS);
    }
    for (i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(argv[1], names[i]) == 0) {
            return data_main_exit(commands[i].run(argc - 1, argv + 1));
        }
    }
    near = fl_str_nearest(argv[1], names, N_COMMANDS);
    return fl_data_usage_error("", "unknown command '%s'%s%s%s", argv[1],
                               near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                               near != NULL ? "'?" : "");
}
