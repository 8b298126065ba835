/* Stand-in main() for builds without libFuzzer: replay the committed corpus. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *buf;
    size_t n;

    if (f == NULL) {
        return -1;
    }
    buf = malloc(1u << 20);
    if (buf == NULL) {
        (void)fclose(f);
        return -1;
    }
    n = fread(buf, 1, 1u << 20, f);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(buf, n);
    free(buf);
    return 0;
}

int main(int argc, char **argv)
{
    const char *base = strrchr(argv[0], '/');
    const char *dir = getenv("FL_FUZZ_DIR");
    char path[4096];
    struct dirent *de;
    unsigned n = 0;
    DIR *d;

    (void)argc;
    base = base != NULL ? base + 1 : argv[0];
    if (strncmp(base, "lt-", 3) == 0) {
        base += 3;
    }
    (void)snprintf(path, sizeof(path), "%s/%s.in", dir != NULL ? dir : ".", base);
    d = opendir(path);
    if (d == NULL) {
        (void)fprintf(stderr, "no corpus at %s\n", path);
        return EXIT_FAILURE; /* A fuzz test without corpus must not pass. */
    }
    while ((de = readdir(d)) != NULL) {
        if (de->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s.in/%s", dir != NULL ? dir : ".", base,
                       de->d_name);
        n += replay_file(path) == 0;
    }
    (void)closedir(d);
    (void)printf("replayed %u inputs\n", n);
    return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
