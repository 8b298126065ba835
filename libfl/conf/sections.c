/*
 * Configuration files as a list of sections, each bound to a struct: reading, locating a key for
 * messages, and the reference. Start-up and reload only.
 */
#include "libfl/conf/sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/conf/conf_impl.h"

struct fl_conf_file {
    struct fl_conf_doc *own; /* NULL: the caller owns the document */
    const struct fl_conf_doc *doc;
    const struct fl_conf_node *map; /* the mapping of the keys; NULL: not given */
    unsigned optional;
    const struct fl_conf_section *sections;
    size_t n;
    struct fl_options *options[];
};

/* Size of the name of a section with others in it. */
#define SECTION_NAME 64

/* The key of a section in another one: what follows the dot; NULL: it stands in the root. */
static const char *section_inner(const char *name)
{
    const char *dot = strchr(name, '.');

    return dot != NULL ? dot + 1 : NULL;
}

/* The map of a section, NULL when it is not given. */
static const struct fl_conf_node *map_of(const struct fl_conf_file *file, size_t i)
{
    const char *name = file->sections[i].name;
    const char *inner = section_inner(name);
    char outer[SECTION_NAME];

    if (inner == NULL) {
        return name[0] != '\0' ? fl_conf_get(file->map, name) : file->map;
    }
    (void)snprintf(outer, sizeof(outer), "%.*s", (int)(inner - name - 1), name);
    return fl_conf_get(fl_conf_get(file->map, outer), inner);
}

/* Keys of a section that are not options: the sections in it, and in the root the keys of the
   caller. */
static const char **section_keys(const struct fl_conf_file *file, const char *name,
                                 const char *const *others)
{
    size_t len = strlen(name);
    const char **keys;
    size_t n = 0;
    size_t i;

    while (others != NULL && others[n] != NULL) {
        n++;
    }
    keys = calloc(n + file->n + 1, sizeof(*keys));
    for (i = 0; keys != NULL && i < n; i++) {
        keys[i] = others[i];
    }
    for (i = 0; keys != NULL && i < file->n; i++) {
        const char *other = file->sections[i].name;
        const char *inner = section_inner(other);

        if (len == 0 && inner == NULL && other[0] != '\0') {
            keys[n++] = other;
        } else if (len > 0 && inner == other + len + 1 && strncmp(other, name, len) == 0) {
            keys[n++] = inner;
        }
    }
    return keys;
}

static int conf_file_make(const struct fl_conf_section *sections, struct fl_conf_file **ret)
{
    struct fl_conf_file *file;
    size_t n = 0;

    while (sections[n].name != NULL) {
        n++;
    }
    file = calloc(1, sizeof(*file) + n * sizeof(struct fl_options *));
    if (file == NULL) {
        return FL_ENOMEM;
    }
    file->sections = sections;
    file->n = n;
    *ret = file;
    return FL_OK;
}

static int read_sections(struct fl_conf_file *file, const char *const *others, void *base,
                         struct fl_err *err)
{
    size_t i;

    for (i = 0; i < file->n; i++) {
        const struct fl_conf_section *section = &file->sections[i];
        const void *values;
        const char **keys;
        int rv = fl_options_create(section->specs, &file->options[i]);

        if (rv != FL_OK) {
            return rv;
        }
        FL_REQUIRE(file->options[i]->specs[file->options[i]->n].offset == section->size);
        values = fl_options_values(file->options[i]);
        (void)memcpy((char *)base + section->offset, &values, sizeof(values));
        keys = section_keys(file, section->name, section->name[0] == '\0' ? others : NULL);
        if (keys == NULL) {
            return FL_ENOMEM;
        }
        rv = fl__conf_apply(file->doc, map_of(file, i), section->name, keys, file->optional,
                            file->options[i], err);
        free(keys);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_conf_read(const char *path, const struct fl_conf_section *sections,
                 const char *const *others, struct fl_findings *all, void *base,
                 struct fl_conf_file **ret, struct fl_err *err)
{
    struct fl_conf_file *file = NULL;
    int rv = conf_file_make(sections, &file);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_conf_load(path, &file->own, err);
    if (rv != FL_OK) {
        goto fail;
    }
    fl_conf_collect(file->own, all);
    file->doc = file->own;
    file->map = fl_conf_root(file->doc);
    rv = read_sections(file, others, base, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = file;
    return FL_OK;
fail:
    fl_conf_file_free(file);
    return rv;
}

int fl_conf_read_map(const struct fl_conf_part *part, const struct fl_conf_section *sections,
                     const char *const *others, void *base, struct fl_conf_file **ret,
                     struct fl_err *err)
{
    struct fl_conf_file *file = NULL;
    int rv = conf_file_make(sections, &file);

    if (rv != FL_OK) {
        return rv;
    }
    file->doc = part->doc;
    file->map = part->map;
    file->optional = part->optional;
    rv = read_sections(file, others, base, err);
    if (rv != FL_OK) {
        fl_conf_file_free(file);
        return rv;
    }
    *ret = file;
    return FL_OK;
}

void fl_conf_file_free(struct fl_conf_file *file)
{
    size_t i;

    if (file == NULL) {
        return;
    }
    for (i = 0; i < file->n; i++) {
        fl_options_free(file->options[i]);
    }
    fl_conf_free(file->own);
    free(file);
}

const struct fl_conf_doc *fl_conf_file_doc(const struct fl_conf_file *file)
{
    return file->doc;
}

const struct fl_conf_node *fl_conf_file_map(const struct fl_conf_file *file)
{
    return file->map;
}

const struct fl_options *fl_conf_file_options(const struct fl_conf_file *file, size_t i)
{
    FL_REQUIRE(i < file->n);
    return file->options[i];
}

const struct fl_conf_node *fl_conf_section(const struct fl_conf_file *file, const void *values)
{
    const struct fl_conf_node *map;
    size_t i = 0;

    while (i < file->n && fl_options_values(file->options[i]) != values) {
        i++;
    }
    FL_REQUIRE(i < file->n);
    map = map_of(file, i);
    map = map != NULL ? map : file->map;
    return map != NULL ? map : fl_conf_root(file->doc);
}

/* The row that binds `field`, or NULL. */
static const struct fl_opt_spec *row_of(const struct fl_options *options, const void *field)
{
    const char *values = fl_options_values(options);
    size_t i;

    for (i = 0; i < options->n; i++) {
        if ((const void *)(values + options->specs[i].offset) == field) {
            return &options->specs[i];
        }
    }
    return NULL;
}

const struct fl_conf_node *fl_conf_field(const struct fl_conf_file *file, const void *field)
{
    const struct fl_opt_spec *spec = NULL;
    const struct fl_conf_node *node;
    size_t i;

    for (i = 0; i < file->n && (spec = row_of(file->options[i], field)) == NULL; i++) {
    }
    FL_REQUIRE(spec != NULL);
    node = fl_conf_get(map_of(file, i), spec->name);
    return node != NULL ? node : fl_conf_section(file, fl_options_values(file->options[i]));
}

int fl_conf_blame(const struct fl_conf_file *file, const void *field, int rv, struct fl_err *err)
{
    struct fl_err inner = *err;

    if (rv == FL_ENOMEM) {
        return rv;
    }
    (void)fl_conf_error(fl_conf_field(file, field), err, "%s", fl_err_text(&inner, rv));
    err->code = rv;
    return rv;
}

int fl_conf_given(const struct fl_conf_file *file, unsigned flags, const char *prefix,
                  struct fl_buf *out)
{
    size_t i;
    size_t k;
    int rv;

    for (i = 0; i < file->n; i++) {
        const struct fl_conf_section *section = &file->sections[i];
        bool all = (section->flags & flags) != 0;

        for (k = 0; k < file->options[i]->n; k++) {
            const struct fl_opt_spec *spec = &section->specs[k];

            if ((all || (spec->flags & flags) != 0) && fl_options_given(file->options[i], spec)) {
                const char *key = all ? "" : spec->name;

                rv = fl_buf_printf(out, "%s%s%s%s%s", out->len > 0 ? ", " : "", prefix,
                                   section->name,
                                   section->name[0] != '\0' && key[0] != '\0' ? "." : "", key);
                if (rv != FL_OK) {
                    return rv;
                }
                k = all ? file->options[i]->n : k;
            }
        }
    }
    return FL_OK;
}

unsigned fl_conf_key_flags(const struct fl_conf_section *sections, const char *key)
{
    for (; sections->name != NULL; sections++) {
        size_t n = strlen(sections->name);
        bool inside = n > 0 && strncmp(key, sections->name, n) == 0;
        const struct fl_opt_spec *spec;

        if (inside && key[n] == '\0') {
            return sections->flags;
        }
        spec = n == 0                    ? fl__opt_find(sections->specs, key)
               : inside && key[n] == '.' ? fl__opt_find(sections->specs, key + n + 1)
                                         : NULL;
        if (spec != NULL) {
            return sections->flags | spec->flags;
        }
    }
    return 0;
}

int fl_conf_sections_reference(const struct fl_conf_section *sections, struct fl_buf *out)
{
    static const struct {
        const char *head;
        unsigned tier;
    } tiers[] = {{"Basic: what a first configuration sets", FL_OPT_BASIC},
                 {"Advanced: the defaults suit most federations", 0},
                 {"Debug: for tests and diagnosis, to be left alone otherwise", FL_OPT_DEBUG}};
    const struct fl_conf_section *section;
    size_t i;

    for (i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
        int rv = fl_buf_printf(out,
                               "%s### %s\n\n| key | type | default | range | meaning |\n"
                               "| --- | --- | --- | --- | --- |\n",
                               i > 0 ? "\n" : "", tiers[i].head);

        if (rv != FL_OK) {
            return rv;
        }
        for (section = sections; section->name != NULL; section++) {
            rv = fl_conf_reference_of(section->specs, section->name, tiers[i].tier, out);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}
