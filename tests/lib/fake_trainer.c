/*
 * A program that speaks docs/trainers.md as it is told to, written from that page alone:
 *
 *     fake_trainer MODE [FILE [NUMBER]]
 *
 * It appends a line to FILE for all that it hears: "start", "model", "train 7" …. MODE says where
 * it leaves the page; in all else, and with "good", it does what it should: its result is the given
 * model with NUMBER (0.5) added to each parameter. Where a mode is about a task it is so with each
 * task.
 *
 *   good            no misbehaviour
 *   few             can train only, and none of the parts
 *   odd_part        declares a part that no solver asks for
 *   many            acts for many clients: each has 100 samples more than its number
 *   no_client       the same, and refuses every client
 *   silent_client   the same, and never answers `client`
 *   no_samples      says that it can train and has no samples
 *   version         answers `start` with version 7
 *   fails_start     answers `start` with `failed`
 *   exits_start     last words on stderr, exit code 3, before it answers anything
 *   silent_start    never answers `start`
 *   refuses         answers `model` with `failed`
 *   silent_model    never answers `model`
 *   seals           seals the result's memory before it has a size
 *   never_reads     takes nothing from its socket once it is ready
 *   prints          text where a message belongs
 *   zero            a message of length 0
 *   no_json         a message that is not JSON
 *   no_type         an object without `type`
 *   unknown         a `type` that the page does not have
 *   no_id           `done` without id
 *   other_id        `done` with the id of another task
 *   twice           `done` twice, in one write
 *   twice_later     `done`, and the same again before the answer to the next task
 *   unasked         a `progress` behind each `done`
 *   ready_again     `ready` where `done` belongs
 *   no_steps        `done` without `steps`
 *   nan             a parameter of the result is not a number
 *   nan_loss        `train_loss` is NaN, which JSON does not have
 *   fails           `failed`, with words on stderr
 *   diverges        `failed` with `diverged`
 *   long_error      `failed` with an error of 900 000 bytes
 *   exits           last words on stderr, exit code 3, with a task open
 *   exits_well      exit code 0 with a task open
 *   exits_once      exits, when FILE tells of no `exits` yet; else good
 *   exits_after     exits behind each `done`
 *   half            ends in the middle of a message
 *   closes          closes its socket and sleeps
 *   hangs           neither answers nor hears
 *   stubborn        the same, and ignores SIGTERM
 *   child           starts a process that ignores SIGTERM and sleeps, then is good
 *   child_hangs     starts such a process, then hangs
 *   waits           answers `canceled` once it is cancelled
 *   done_late       answers `done` once it is cancelled
 *   floods          `progress` without end
 *   writes          tries to write to the weights in every way, then is good; FILE has what went
 *   memory          takes 64 MB of memory, then hangs
 *   child_memory    the same in another process
 *   stays           does not end with `bye`
 *   summaries_much     tells of a summary that is longer than its slot
 *   fills           writes as much as it can into the working folder, then fails
 *   two             answers from a second process too
 *   second          starts another program, which has its socket and answers too
 *   two_readers     goes on in two processes once it has accepted a model
 *
 * `fake_trainer answers FILE ID` is that other program.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *mode = "good";
static const char *notes;
static float added = 0.5f;
static int sock, weights, result;

static struct {
    size_t weights_bytes, result_bytes;
    size_t given, made, summary; /* offsets of numbers */
    size_t count, summary_bytes;
    const uint8_t *weights;
    uint8_t *result;
} memory;

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *fmt, ...)
{
    FILE *f = notes != NULL ? fopen(notes, "a") : NULL;
    va_list args;

    if (f == NULL) {
        return;
    }
    va_start(args, fmt);
    (void)vfprintf(f, fmt, args);
    va_end(args);
    (void)fputc('\n', f);
    (void)fclose(f);
}

static bool noted(const char *line)
{
    char text[256];
    bool found = false;
    FILE *f = fopen(notes, "r");

    while (f != NULL && fgets(text, sizeof(text), f) != NULL) {
        text[strcspn(text, "\n")] = '\0';
        found = found || strcmp(text, line) == 0;
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return found;
}

/* --- messages --- */

static void send_bytes(const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(sock, p, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            _exit(0);
        }
        p += n;
        len -= (size_t)n;
    }
}

static size_t framed(const char *text, char *out)
{
    size_t len = strlen(text);
    const unsigned char head[4] = {(unsigned char)len, (unsigned char)(len >> 8),
                                   (unsigned char)(len >> 16), (unsigned char)(len >> 24)};

    (void)memcpy(out, head, 4);
    (void)memcpy(out + 4, text, len);
    return len + 4;
}

static void say_text(const char *text)
{
    char *frame = malloc(strlen(text) + 4);

    send_bytes(frame, framed(text, frame));
    free(frame);
}

/* Takes `json`. */
static void say(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);

    say_text(text);
    free(text);
    json_decref(json);
}

static void read_all(void *out, size_t len)
{
    char *p = out;

    while (len > 0) {
        ssize_t n = read(sock, p, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            exit(0); /* The end of the socket is as good as `bye`. */
        }
        p += n;
        len -= (size_t)n;
    }
}

static json_t *hear(void)
{
    unsigned char head[4];
    size_t len;
    char *text;
    json_t *json;

    read_all(head, sizeof(head));
    len = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    text = malloc(len);
    read_all(text, len);
    json = json_loadb(text, len, 0, NULL);
    free(text);
    return json;
}

static size_t number(const json_t *json, const char *key)
{
    return (size_t)json_integer_value(json_object_get(json, key));
}

static void ignore_sigterm(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGTERM, &ignore, NULL);
}

static void hang(void)
{
    for (;;) {
        (void)pause();
    }
}

/* --- start and model --- */

static json_t *parts(void)
{
    if (is("few")) {
        return json_array();
    }
    if (is("odd_part")) {
        return json_pack("[s]", "fly");
    }
    return json_pack("[s, s, s, s, s, s]", "pull", "gradient", "drift", "pfedme", "per_fedavg",
                     "mixup");
}

static bool acts(void)
{
    return is("many") || is("no_client") || is("silent_client");
}

static void on_client(const json_t *m)
{
    const char *name = json_string_value(json_object_get(m, "client"));
    json_int_t number = json_integer_value(json_object_get(m, "number"));
    json_t *train = json_object_get(m, "train");
    char *text = json_dumps(train, JSON_COMPACT | JSON_ENCODE_ANY);

    note("client %s %s", name != NULL ? name : "null", text);
    free(text);
    if (is("silent_client")) {
        hang();
    }
    if (is("no_client")) {
        say(json_pack("{s:s, s:s}", "type", "failed", "error", "it has no folder"));
        return;
    }
    say(json_pack("{s:s, s:I, s:i}", "type", "accepted", "samples", 100 + number, "test_samples",
                  10));
}

static void on_start(const json_t *m)
{
    json_t *can =
        is("few") ? json_pack("[s]", "train")
                  : json_pack("[s, s, s, s, s]", "train", "evaluate", "adapt", "summary", "fly");
    const char *data = json_string_value(json_object_get(m, "data"));

    note("start %s %s %s", json_string_value(json_object_get(m, "client")),
         data != NULL ? data : "null", json_string_value(json_object_get(m, "purpose")));
    if (is("exits_start")) {
        (void)fprintf(stderr, "cannot find my data\n");
        exit(3);
    }
    if (is("silent_start")) {
        hang();
    }
    if (is("fails_start")) {
        say(json_pack("{s:s, s:s}", "type", "failed", "error", "no GPU is left"));
        return;
    }
    if (is("seals")) {
        (void)fcntl(result, F_ADD_SEALS, F_SEAL_SEAL);
    }
    say(json_pack("{s:s, s:i, s:o, s:o, s:i, s:i, s:s, s:i, s:b}", "type", "ready", "protocol",
                  is("version") ? 7 : 1, "can", can, "parts", parts(), "samples",
                  is("no_samples") || acts() ? 0 : 270, "test_samples", is("few") ? 0 : 30,
                  "software", "fake trainer", "of_no_interest", 5, "clients", acts()));
    if (is("never_reads")) {
        hang();
    }
}

/* Ways to write to what is there to be read; "" when none of them goes. */
static void try_to_write(void)
{
    char path[64];
    int again;
    void *map;

    map = mmap(NULL, memory.weights_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, weights, 0);
    if (map != MAP_FAILED) {
        note("mapped writable");
        (void)memset(map, 0, memory.weights_bytes);
    }
    if (mprotect((void *)(uintptr_t)memory.weights, memory.weights_bytes, PROT_READ | PROT_WRITE) ==
        0) {
        note("made writable");
        *(uint8_t *)(uintptr_t)memory.weights = 0;
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", weights);
    again = open(path, O_RDWR);
    if (again >= 0 && mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) != MAP_FAILED)
    {
        note("mapped writable, opened again");
    }
    if (again >= 0 && pwrite(again, "x", 1, 0) == 1) {
        note("written");
    }
    if (again >= 0 && (ftruncate(again, 1) == 0 || ftruncate(result, 1) == 0)) {
        note("made shorter");
    }
    if (ftruncate(result, (off_t)memory.result_bytes + 4096) == 0) {
        note("made longer");
    }
    if (again >= 0) {
        (void)close(again);
    }
}

static void map_memory(const json_t *m)
{
    const json_t *w = json_object_get(m, "weights");
    const json_t *r = json_object_get(m, "result");
    const json_t *from = json_object_get(json_object_get(w, "slots"), "model");
    const json_t *to = json_object_get(json_object_get(r, "slots"), "model");
    const json_t *summary = json_object_get(json_object_get(r, "slots"), "summary");

    memory.weights_bytes = number(w, "bytes");
    memory.result_bytes = number(r, "bytes");
    memory.given = number(from, "data");
    memory.made = number(to, "data");
    memory.summary = number(summary, "offset");
    memory.summary_bytes = number(summary, "bytes");
    memory.count = (number(from, "offset") + number(from, "bytes") - memory.given) / sizeof(float);
    memory.weights = mmap(NULL, memory.weights_bytes, PROT_READ, MAP_SHARED, weights, 0);
    memory.result = mmap(NULL, memory.result_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, result, 0);
    if (memory.weights == MAP_FAILED || memory.result == MAP_FAILED) {
        (void)fprintf(stderr, "mmap: %s\n", strerror(errno));
        exit(4);
    }
}

static void on_model(const json_t *m)
{
    note("model");
    if (is("silent_model")) {
        hang();
    }
    if (is("refuses")) {
        say(json_pack("{s:s, s:s}", "type", "failed", "error",
                      "fc1.weight is 60x784 and mine is 30x784"));
        return;
    }
    map_memory(m);
    if (is("writes")) {
        try_to_write();
    }
    say(json_pack("{s:s}", "type", "accepted"));
    if (is("two_readers")) {
        (void)!fork();
    }
}

/* --- tasks --- */

static json_t *evaluation(int correct)
{
    return json_pack("{s:i, s:i, s:f}", "samples", 30, "correct", correct, "loss_sum", 24.0);
}

static json_t *done_of(const char *type, json_int_t id)
{
    json_t *json = json_pack("{s:s, s:I}", "type", "done", "id", id);

    if (strcmp(type, "train") == 0) {
        (void)json_object_set_new(json, "samples", json_integer(270));
        (void)json_object_set_new(json, "steps", json_integer(14));
        (void)json_object_set_new(json, "train_loss", json_real(0.25));
        (void)json_object_set_new(json, "trained", evaluation(25));
    }
    if (strcmp(type, "adapt") == 0) {
        (void)json_object_set_new(json, "adapted", evaluation(27));
    }
    if (strcmp(type, "summary") == 0) {
        (void)json_object_set_new(
            json, "bytes",
            json_integer((json_int_t)(is("summaries_much") ? memory.summary_bytes + 1 : 5)));
    } else {
        (void)json_object_set_new(json, "received", evaluation(21));
    }
    return json;
}

static void fill_result(const char *type)
{
    const float *from = (const float *)(const void *)(memory.weights + memory.given);
    float *to = (float *)(void *)(memory.result + memory.made);
    size_t i;

    if (strcmp(type, "summary") == 0) {
        (void)memcpy(memory.result + memory.summary, "means", 5);
        return;
    }
    for (i = 0; i < memory.count; i++) {
        to[i] = from[i] + added;
    }
    if (is("nan")) {
        to[memory.count - 1] = nanf("");
    }
}

/* Returns once the child has noted itself and ignores SIGTERM: an answer may end both at once. */
static void start_child(void (*what)(void))
{
    int ready[2];
    char byte;

    if (pipe(ready) != 0) {
        abort();
    }
    if (fork() == 0) {
        ignore_sigterm();
        note("child %d", (int)getpid());
        (void)close(ready[0]);
        (void)close(ready[1]);
        what();
    }
    (void)close(ready[1]);
    while (read(ready[0], &byte, 1) < 0 && errno == EINTR) {
    }
    (void)close(ready[0]);
}

static void take_memory(void)
{
    size_t bytes = (size_t)64 << 20;
    volatile char *p = malloc(bytes); /* else the compiler sees that nobody reads it */
    size_t i;

    for (i = 0; i < bytes; i += 1024) {
        p[i] = 1;
    }
    hang();
}

static void fail(json_int_t id, const char *error, bool diverged)
{
    say(json_pack("{s:s, s:I, s:s, s:b}", "type", "failed", "id", id, "error", error, "diverged",
                  diverged));
}

/* What goes wrong before an answer. True: it was the answer. */
static bool ends_badly(json_int_t id)
{
    if (is("exits") || (is("exits_once") && !noted("exits"))) {
        note("exits");
        (void)fprintf(stderr, "out of\nluck\n");
        exit(3);
    }
    if (is("exits_well")) {
        exit(0);
    }
    if (is("half")) {
        send_bytes("\x40\0\0\0{\"type\": \"do", 16);
        (void)fprintf(stderr, "cut off\n");
        exit(3);
    }
    if (is("closes")) {
        (void)close(sock);
        hang();
    }
    if (is("stubborn")) {
        ignore_sigterm();
    }
    if (is("child") || is("child_hangs")) {
        start_child(hang);
    }
    if (is("child_memory")) {
        start_child(take_memory);
    }
    if (is("memory")) {
        take_memory();
    }
    if (is("hangs") || is("stubborn") || is("child_hangs") || is("child_memory")) {
        (void)fprintf(stderr, "waiting for a lock\n");
        note("hangs");
        hang();
    }
    while (is("floods")) {
        say(json_pack("{s:s, s:I, s:i, s:i}", "type", "progress", "id", id, "done", 1, "total", 2));
    }
    return false;
}

static bool breaks_the_page(json_int_t id)
{
    if (is("prints")) {
        send_bytes("epoch 1: loss 0.3\n", 18);
        hang();
    } else if (is("zero")) {
        send_bytes("\0\0\0\0", 4);
        hang();
    } else if (is("no_json")) {
        say_text("all is well");
    } else if (is("no_type")) {
        say_text("{\"id\": 1}");
    } else if (is("unknown")) {
        say_text("{\"type\": \"finished\", \"id\": 1}");
    } else if (is("no_id")) {
        say_text("{\"type\": \"done\", \"samples\": 1, \"steps\": 1, \"train_loss\": 1}");
    } else if (is("other_id")) {
        say(done_of("train", id + 1));
    } else if (is("ready_again")) {
        on_start(json_null());
    } else if (is("no_steps")) {
        say(json_pack("{s:s, s:I, s:i, s:f}", "type", "done", "id", id, "samples", 1, "train_loss",
                      1.0));
    } else if (is("nan_loss")) {
        char text[128];

        (void)snprintf(text, sizeof(text),
                       "{\"type\": \"done\", \"id\": %lld, \"samples\": 1, \"steps\": 1, "
                       "\"train_loss\": NaN}",
                       (long long)id);
        say_text(text);
    } else {
        return false;
    }
    return true;
}

static void fill_the_disk(void)
{
    static char block[65536];
    int fd = open("filled", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    size_t n = 0;

    while (n < 1024 && write(fd, block, sizeof(block)) == (ssize_t)sizeof(block)) {
        n++;
    }
    (void)fprintf(stderr, "write: %s\n", strerror(errno));
}

static bool says_failed(json_int_t id)
{
    static char error[900001];

    if (is("fails")) {
        (void)fprintf(stderr, "Traceback: no such column\n");
        fail(id, "no such column: age", false);
    } else if (is("fills")) {
        fill_the_disk();
        fail(id, "no space left on device", false);
    } else if (is("diverges")) {
        fail(id, "the loss is not finite", true);
    } else if (is("long_error")) {
        (void)memset(error, 'e', sizeof(error) - 1);
        (void)memcpy(error, "begins", 6);
        (void)memcpy(error + sizeof(error) - 7, "ends..", 6);
        fail(id, error, false);
    } else {
        return false;
    }
    return true;
}

/* Another program, to which our socket was left open. */
static void start_second(json_int_t id)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%lld", (long long)id);
    if (fork() == 0) {
        (void)execl("/proc/self/exe", "fake_trainer", "answers", notes, text, (char *)NULL);
        _exit(4);
    }
}

static void answer(const char *type, json_int_t id)
{
    static json_int_t before;
    json_t *done;
    char *text;
    char both[2048];
    size_t n;

    if (is("second")) {
        start_second(id);
    }
    if (is("twice_later") && before != 0) {
        say(done_of(type, before));
    }
    before = id;
    done = done_of(type, id);
    text = json_dumps(done, JSON_COMPACT);
    json_decref(done);
    n = framed(text, both);
    if (is("twice")) {
        n += framed(text, both + n);
    }
    send_bytes(both, n);
    free(text);
    if (is("unasked")) {
        say(json_pack("{s:s, s:I, s:i, s:i}", "type", "progress", "id", id, "done", 1, "total", 2));
    }
    if (is("two") && fork() == 0) {
        say(done_of(type, id));
        _exit(0);
    }
    if (is("exits_after")) {
        exit(3);
    }
}

static void on_task(const char *type, const json_t *m)
{
    json_int_t id = json_integer_value(json_object_get(m, "id"));

    note("%s %lld", type, (long long)id);
    if (ends_badly(id) || breaks_the_page(id) || says_failed(id)) {
        return;
    }
    if (is("waits") || is("done_late")) {
        json_t *next;

        note("waits");
        next = hear();
        note("%s", json_string_value(json_object_get(next, "type")));
        if (is("waits")) {
            say(json_pack("{s:s, s:I}", "type", "canceled", "id", id));
            return;
        }
    }
    say(json_pack("{s:s, s:I, s:i, s:i}", "type", "progress", "id", id, "done", 7, "total", 14));
    fill_result(type);
    answer(type, id);
}

static void on_message(const char *type, const json_t *m)
{
    if (strcmp(type, "start") == 0) {
        on_start(m);
    } else if (strcmp(type, "model") == 0) {
        on_model(m);
    } else if (strcmp(type, "client") == 0) {
        on_client(m);
    } else if (strcmp(type, "cancel") == 0) {
        note("cancel");
    } else if (strcmp(type, "bye") == 0) {
        note("bye");
        if (is("stays")) {
            hang();
        }
        exit(0);
    } else {
        on_task(type, m);
    }
}

static int descriptor(const char *name)
{
    const char *text = getenv(name);

    if (text == NULL) {
        (void)fprintf(stderr, "%s is not set\n", name);
        exit(4);
    }
    return (int)strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : mode;
    notes = argc > 2 ? argv[2] : NULL;
    added = argc > 3 ? strtof(argv[3], NULL) : added;
    sock = descriptor("FL_TRAINER_SOCKET");
    weights = descriptor("FL_TRAINER_WEIGHTS");
    result = descriptor("FL_TRAINER_RESULT");
    if (is("answers")) {
        say(done_of("train", (json_int_t)added));
        return 0;
    }
    for (;;) {
        json_t *m = hear();

        on_message(json_string_value(json_object_get(m, "type")), m);
        json_decref(m);
    }
}
