#include "tests/lib/suites.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUITES_MAX 64

static struct {
    const char *file;
    Suite *(*make)(void);
} suites[SUITES_MAX];
static size_t n_suites;

void suites_add(const char *file, Suite *(*make)(void))
{
    if (n_suites == SUITES_MAX) {
        (void)fprintf(stderr, "%s: more than %d suites in a program: raise SUITES_MAX\n", file,
                      SUITES_MAX);
        abort();
    }
    suites[n_suites].file = file;
    suites[n_suites].make = make;
    n_suites++;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Is `name` that of the file, without its ".c"? */
static bool is_of_file(const char *name, const char *file)
{
    const char *base = base_name(file);
    size_t len = strlen(name);

    return strncmp(base, name, len) == 0 && strcmp(base + len, ".c") == 0;
}

int main(int argc, char **argv)
{
    const char *name = base_name(argc > 0 ? argv[0] : "");
    bool one = strncmp(name, "test_", 5) == 0;
    SRunner *runner = srunner_create(NULL);
    size_t n_run = 0;
    size_t i;
    int failed;

    for (i = 0; i < n_suites; i++) {
        if (!one || is_of_file(name, suites[i].file)) {
            srunner_add_suite(runner, suites[i].make());
            n_run++;
        }
    }
    if (n_run == 0) {
        (void)fprintf(stderr, "%s: no file of this program has a suite of that name\n", name);
        return EXIT_FAILURE;
    }
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
