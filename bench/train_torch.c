#include "bench/train_torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef FL_TRAIN_TORCH
#define FL_TRAIN_TORCH "bench/train_torch.py"
#endif

struct train_torch {
    pid_t pid;
    FILE *to, *from;
};

/* The layers, what stands before them and the end. */
#define MAX_WORDS (FL_NET_MAX_LAYERS + 6)

static void become(const char *python, const struct train_work *work, double momentum)
{
    const struct fl_net_spec *spec = &work->spec;
    const char *words[MAX_WORDS];
    char input[3 * 24];
    char batch[24];
    char m[32];
    size_t n = 0;
    int used = 0;
    size_t i;

    for (i = 0; i < spec->n_input; i++) {
        used += snprintf(input + used, sizeof(input) - (size_t)used, "%s%zu", i > 0 ? "," : "",
                         spec->input[i]);
    }
    (void)snprintf(batch, sizeof(batch), "%zu", work->batch);
    (void)snprintf(m, sizeof(m), "%.17g", momentum);
    words[n++] = python;
    words[n++] = FL_TRAIN_TORCH;
    words[n++] = input;
    words[n++] = batch;
    words[n++] = m;
    for (i = 0; i < spec->n_layers; i++) {
        words[n++] = spec->layers[i];
    }
    words[n] = NULL;
    /* It keeps the memory that it freed: else the kernel's clearing of pages would be measured. */
    (void)setenv("MALLOC_TOP_PAD_", "1073741824", 1);
    (void)setenv("MALLOC_MMAP_MAX_", "0", 1);
    (void)execv(python, (char *const *)(uintptr_t)words);
    perror(python);
    _exit(127);
}

static int start(struct train_torch *torch, const char *python, const struct train_work *work,
                 double momentum)
{
    int to[2] = {-1, -1};
    int from[2] = {-1, -1};

    if (pipe(to) != 0 || pipe(from) != 0) {
        return FL_EIO;
    }
    (void)fflush(NULL);
    torch->pid = fork();
    if (torch->pid == 0) {
        (void)dup2(to[0], STDIN_FILENO);
        (void)dup2(from[1], STDOUT_FILENO);
        (void)close(to[1]);
        (void)close(from[0]);
        become(python, work, momentum);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    torch->to = fdopen(to[1], "w");
    torch->from = fdopen(from[0], "r");
    return torch->pid > 0 && torch->to != NULL && torch->from != NULL ? FL_OK : FL_EIO;
}

int train_torch_start(const char *python, const struct train_work *work, double momentum,
                      struct train_torch **ret, struct fl_err *err)
{
    struct train_torch *torch = train_alloc(1, sizeof(*torch));
    char line[256] = "";
    int rv = start(torch, python, work, momentum);

    if (rv != FL_OK || fgets(line, sizeof(line), torch->from) == NULL ||
        strncmp(line, "torch ", 6) != 0)
    {
        train_torch_stop(torch);
        return fl_err_set(err, FL_ESTATE,
                          "%s does not make this network with PyTorch "
                          "(python3-torch; --python)",
                          python);
    }
    *ret = torch;
    return FL_OK;
}

double train_torch_rate(struct train_torch *torch, double seconds)
{
    char line[64] = "";
    double rate = 0.0;

    (void)fprintf(torch->to, "%.6f\n", seconds);
    if (fflush(torch->to) != 0 || fgets(line, sizeof(line), torch->from) == NULL) {
        return 0.0;
    }
    line[strcspn(line, "\n")] = '\0';
    return fl_str_to_double(line, &rate) == FL_OK ? rate : 0.0;
}

void train_torch_stop(struct train_torch *torch)
{
    if (torch == NULL) {
        return;
    }
    if (torch->to != NULL) {
        (void)fclose(torch->to); /* The end of its input ends it. */
    }
    if (torch->from != NULL) {
        (void)fclose(torch->from);
    }
    if (torch->pid > 0) {
        (void)waitpid(torch->pid, NULL, 0);
    }
    free(torch);
}
