/* Every preset of fl-serverd --help with the policies of its components, a line each: "lean uniform
 * stepped sgd …". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/strategy/strategy.h"

static int show(const char *name)
{
    struct fl_strategy *strategy = NULL;
    struct fl_err err = {0};
    struct fl_buf text;
    int component;
    int rv = fl_strategy_create(name, &strategy, &err);

    if (rv != FL_OK) {
        (void)fprintf(stderr, "%s: %s\n", name, err.msg);
        return rv;
    }
    (void)printf("%s", name);
    fl_buf_init(&text, 4096);
    for (component = 0; component < FL_COMPONENT_COUNT && rv == FL_OK; component++) {
        text.len = 0;
        rv = fl_strategy_component_text(strategy, (enum fl_component)component, &text);
        /* The policy is the first word, options follow. */
        (void)printf(" %.*s", (int)strcspn((const char *)text.data, " "), (const char *)text.data);
    }
    (void)printf("\n");
    fl_buf_done(&text);
    fl_strategy_free(strategy);
    return rv;
}

int main(void)
{
    const struct fl_preset *p;

    for (p = fl_strategy_presets(); p->name != NULL; p++) {
        if (show(p->name) != FL_OK) {
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
