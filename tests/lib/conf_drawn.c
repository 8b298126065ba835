#include "tests/lib/conf_drawn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/each_preset.h"

void conf_drawn_add(struct fl_buf *yaml, const char *text)
{
    ck_assert_int_eq(fl_buf_add(yaml, text, strlen(text)), FL_OK);
}

const char *conf_drawn_preset(struct fl_rng *rng)
{
    return each_preset((int)fl_rng_below(rng, (uint64_t)each_preset_count()));
}

/* "conf.yaml:12: …" */
static bool has_line(const char *text, const char *path)
{
    const char *at = strstr(text, path);

    return at != NULL && at[strlen(path)] == ':' && at[strlen(path) + 1] >= '1' &&
           at[strlen(path) + 1] <= '9';
}

static struct fl_server_conf *conf_drawn_load(const struct fl_buf *yaml, uint64_t seed)
{
    char path[] = "/tmp/fl-conf.XXXXXX";
    struct fl_server_conf *conf = NULL;
    struct fl_err err = {0};
    int fd = mkstemp(path);
    int rv;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, yaml->data, yaml->len), (int)yaml->len);
    (void)close(fd);
    rv = fl_server_conf_load(path, NULL, &conf, &err);
    (void)unlink(path);
    ck_assert_msg(rv == FL_OK || (rv == FL_ECONF && has_line(err.msg, path)),
                  "seed %" PRIu64 ": %s: %s", seed, fl_strerror(rv), err.msg);
    return rv == FL_OK ? conf : NULL;
}

struct fl_server_conf *conf_drawn_make(void (*draw)(struct fl_buf *yaml, struct fl_rng *rng),
                                       uint64_t seed, bool show)
{
    struct fl_server_conf *conf;
    struct fl_rng rng;
    struct fl_buf yaml;

    fl_rng_key(&rng, seed, FL_RNG_TEST, 1, 1);
    fl_buf_init(&yaml, 1u << 20);
    draw(&yaml, &rng);
    if (show) {
        (void)fprintf(stderr, "%.*s\n", (int)yaml.len, (const char *)yaml.data);
    }
    conf = conf_drawn_load(&yaml, seed);
    fl_buf_done(&yaml);
    return conf;
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = otherwise;

    return text != NULL && fl_str_to_u64(text, &value) == FL_OK ? value : otherwise;
}

bool conf_drawn_seeds(int i, void (*run)(uint64_t seed, bool show))
{
    uint64_t only = env_number("FL_CONF_SEED", 0);
    uint64_t first = 1 + (uint64_t)i * CONF_DRAWN_PER_TEST;
    uint64_t seed;

    if (only != 0) {
        if (i == 0) {
            run(only, true);
        }
        return false;
    }
    for (seed = first; seed < first + CONF_DRAWN_PER_TEST; seed++) {
        run(seed, false);
    }
    return true;
}

int conf_drawn_loops(void)
{
    return (int)(env_number("FL_CONF_SEEDS", 1000) / CONF_DRAWN_PER_TEST);
}
