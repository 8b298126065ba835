/* Presets on standard input, a line each: those that the server's configuration accepts are
 * printed. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/conf/yaml.h"
#include "server/conf/server_conf.h"

static bool is_accepted(const char *name)
{
    struct fl_server_conf *conf = NULL;
    struct fl_conf_doc *doc = NULL;
    struct fl_err err = {0};
    char text[512];
    int len = snprintf(text, sizeof(text),
                       "algorithm: %s\nmodel: {preset: dnn60}\ntraining: {learning_rate: 0.01}\n"
                       "evaluation: {clients: yes}\n",
                       name);
    bool accepted;

    if (len < 0 || (size_t)len >= sizeof(text)) {
        return false;
    }
    accepted = fl_conf_parse("joins", text, (size_t)len, &doc, &err) == FL_OK &&
               fl_server_conf_read(doc, fl_conf_root(doc), &conf, &err) == FL_OK;
    fl_server_conf_free(conf);
    fl_conf_free(doc);
    return accepted;
}

int main(void)
{
    char name[256];

    while (fgets(name, sizeof(name), stdin) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        if (is_accepted(name)) {
            (void)puts(name);
        }
    }
    return EXIT_SUCCESS;
}
