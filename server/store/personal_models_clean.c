/* Removing old files of personalized models, and quarantining damaged ones. */

#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/store/store_files_impl.h"
#include "server/store/store_impl.h"

#define QUARANTINED_SUFFIX FL__PERSONAL_MODELS_SUFFIX ".bad"

/* The round in a name such as "000012.mix", with `end` after the digits; 0: another name. */
static uint64_t round_of(const char *name, const char *end)
{
    char digits[24];
    size_t n = strspn(name, "0123456789");
    uint64_t round = 0;

    if (n == 0 || n >= sizeof(digits) || strcmp(name + n, end) != 0) {
        return 0;
    }
    (void)memcpy(digits, name, n);
    digits[n] = '\0';
    return fl_str_to_u64(digits, &round) == FL_OK ? round : 0;
}

static int remove_each(const char *dir, fl_fs_goes_cb *goes, const uint64_t *span,
                       struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];

    return fl_fs_join(folder, sizeof(folder), dir, "personal_models") == FL_OK
               ? fl_fs_remove_each(folder, goes, span, err)
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

static bool is_outside(const void *ctx, const char *name)
{
    const uint64_t *span = ctx;
    uint64_t round = round_of(name, FL__PERSONAL_MODELS_SUFFIX);

    return strstr(name, FL__PERSONAL_MODELS_SUFFIX) != NULL &&
           round_of(name, QUARANTINED_SUFFIX) == 0 &&
           (round == 0 || round < span[0] || round > span[1]);
}

static bool is_quarantined(const void *ctx, const char *name)
{
    (void)ctx;
    return round_of(name, QUARANTINED_SUFFIX) != 0;
}

int fl_personal_models_clean(const char *dir, uint64_t oldest, uint64_t newest, struct fl_err *err)
{
    const uint64_t span[] = {oldest, newest};

    return remove_each(dir, is_outside, span, err);
}

int fl_personal_models_quarantine(const char *dir, uint64_t round, struct fl_err *err)
{
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    int rv = fl__personal_models_path(dir, round, "", from, sizeof(from), err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__personal_models_path(dir, round, ".bad", to, sizeof(to), err);
    if (rv != FL_OK || !fl_fs_exists(from)) {
        return rv;
    }
    rv = remove_each(dir, is_quarantined, NULL, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_publish(from, to, /* sync= */ true, err);
}
