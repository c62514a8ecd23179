/* The load generator of the benchmarks: one thread, many connections, every answer is judged.

   load PORT [--connections N] [--seconds S] [--warm-up S] [--spread S] [--rate N] [--answers N] [--events N]
        [--needle TEXT] [--pid PID] [--pid PID] < REQUEST

   Sends the request of its standard input, head and body, again and again: in a closed loop on each connection, or with
   --rate at fixed times, whether or not earlier requests have been answered. Times count from when a request had to be
   sent. Measures for --seconds after --warm-up, or until --answers have come; the connections start during --spread.
   With --events an answer must be a stream with as many tokens (provider.c) in their order, else one JSON value; the
   end of the stream, or the value, must contain the needle. Prints one JSON object. */
#include "common.h"
#include "json_check.h"

#include <dirent.h>
#include <sys/resource.h>

#define MOST_ERRORS 50
#define MOST_PIDS 4

typedef struct {
    double *values;
    size_t count, capacity;
} samples;

enum chunk_state { SIZE, DATA, AFTER_DATA, TRAILERS };

typedef struct connection {
    int fd, busy, done, is_chunked, saw_needle, next_token;
    size_t sent, head, left; /* sent: of the request; left: of the body, or of the chunk */
    enum chunk_state chunk;
    uint64_t due, received;
    buffer in, body;
    struct connection *next; /* of those that are idle */
} connection;

static struct {
    int port, connections, events, pids[MOST_PIDS], pid_count;
    double seconds, warm_up, spread, rate;
    long answers;
    const char *needle;
    buffer request;
} options = {.connections = 1, .seconds = 1};

static int epoll, measures;
static connection *all, *idle, **idle_end = &idle;
static uint64_t began; /* when the schedule of an open loop began */
static long answers, tokens, errors, sent_requests, queued;
static char first_error[400];
static samples latencies, first_tokens, delays;

static void record(samples *s, double value) {
    if (!measures) return;
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 4096;
        if (!(s->values = realloc(s->values, s->capacity * sizeof *s->values))) die("realloc");
    }
    s->values[s->count++] = value;
}

/* ---- connections ---- */

static void open_connection(connection *c) {
    struct sockaddr_in address = local_address(options.port);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) die("connect");
    set_no_delay(c->fd);
    watch(epoll, EPOLL_CTL_ADD, c->fd, EPOLLIN, c);
    c->in.length = c->body.length = 0;
    c->busy = 0;
}

static void set_idle(connection *c) {
    c->busy = 0;
    c->next = NULL;
    *idle_end = c;
    idle_end = &c->next;
}

static connection *take_idle(void) {
    connection *c = idle;
    if (c && !(idle = c->next)) idle_end = &idle;
    return c;
}

static void send_rest(connection *c) {
    while (c->sent < options.request.length) {
        const char *rest = options.request.data + c->sent;
        ssize_t count = send(c->fd, rest, options.request.length - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) break; /* if it is not EAGAIN, reading finds the end of the connection */
        c->sent += (size_t)count;
    }
    watch(epoll, EPOLL_CTL_MOD, c->fd, c->sent < options.request.length ? EPOLLIN | EPOLLOUT : EPOLLIN, c);
}

static void send_request(connection *c, uint64_t due) {
    c->busy = 1, c->due = due;
    c->sent = c->head = c->left = 0;
    c->done = c->is_chunked = c->saw_needle = c->next_token = 0;
    c->chunk = SIZE;
    ssize_t count = send(c->fd, options.request.data, options.request.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    c->sent = count > 0 ? (size_t)count : 0;
    if (c->sent < options.request.length) send_rest(c);
}

/* After an answer: the next request of a closed loop, or one that has waited, or none. */
static void go_on(connection *c, uint64_t now) {
    if (!options.rate) {
        send_request(c, now);
    } else if (queued) {
        uint64_t due = began + (uint64_t)((double)(sent_requests++) * 1e9 / options.rate);
        queued--;
        send_request(c, due);
    } else {
        set_idle(c);
    }
}

static void fail(connection *c, const char *what, const char *data, size_t length) {
    int was_busy = c->busy; /* else it is in the list of idle ones, and stays there */
    errors++;
    if (!*first_error) {
        int shown = length > 160 ? 160 : (int)length;
        snprintf(first_error, sizeof first_error, "%s: %.*s", what, shown, data ? data : "");
    }
    close(c->fd);
    open_connection(c);
    if (was_busy && errors < MOST_ERRORS) go_on(c, now_ns());
}

/* ---- answers ---- */

/* Count the tokens of an event. A token that has come before is repeated by the last events of some protocols. */
static int read_tokens(connection *c, const char *data, size_t length) {
    const char *end = data + length;
    while ((data = memchr(data, '@', (size_t)(end - data))) && end - data >= 16) {
        char digits[16] = {0};
        memcpy(digits, data + 4, 12);
        uint64_t sent = strtoull(digits, NULL, 16);
        memcpy(digits, data + 1, 3);
        digits[3] = 0;
        int number = atoi(digits);
        data += 16;
        if (number < c->next_token) continue;
        if (number > c->next_token) return 0;
        if (!c->next_token++) record(&first_tokens, (double)(c->received - c->due) / 1e6);
        record(&delays, (double)((c->received - sent) & TIME_MASK) / 1e3);
        tokens++;
    }
    return 1;
}

/* Judge one event, without its empty line. */
static const char *judge_event(connection *c, const char *event, size_t length) {
    const char *data = memmem(event, length, "data:", 5);
    if (!data || (data != event && data[-1] != '\n')) return *event == ':' ? NULL : "an event without data";
    size_t size = length - (size_t)(data - event) - 5;
    data += 5;
    if (size >= 7 && memmem(data, size, "[DONE]", 6)) {
        c->saw_needle |= !strcmp(options.needle, "[DONE]");
        return c->next_token < options.events ? "a stream that ends too early" : NULL;
    }
    if (!is_json(data, size)) return "an event that is no JSON";
    c->saw_needle |= memmem(data, size, options.needle, strlen(options.needle)) != NULL;
    return read_tokens(c, data, size) ? NULL : "an event that follows one that is missing";
}

static const char *judge_events(connection *c) {
    size_t at = 0;
    const char *end, *error = NULL;
    while (!error && (end = memmem(c->body.data + at, c->body.length - at, "\n\n", 2))) {
        size_t length = (size_t)(end - c->body.data) - at;
        error = judge_event(c, c->body.data + at, length);
        at += length + 2;
    }
    if (!error) drop(&c->body, at);
    return error;
}

static const char *judge_end(connection *c) {
    if (!options.events) {
        if (!is_json(c->body.data, c->body.length)) return "an answer that is no JSON";
        return memmem(c->body.data, c->body.length, options.needle, strlen(options.needle)) ? NULL : "a wrong answer";
    }
    if (c->next_token != options.events) return "a stream that lacks events";
    if (c->body.length) return "a stream that ends within an event";
    return c->saw_needle ? NULL : "a stream that lacks its end";
}

static const char *read_head(connection *c) {
    if (!(c->head = find_head(c->in.data, c->in.length))) return NULL;
    if (c->head < 15 || memcmp(c->in.data, "HTTP/1.1 200", 12)) return "not the status 200";
    const char *length = find_header(c->in.data, c->head, "content-length");
    const char *coding = find_header(c->in.data, c->head, "transfer-encoding");
    c->is_chunked = coding != NULL;
    if (!length && !coding) return "an answer without a length";
    if (length) c->left = strtoul(length, NULL, 10);
    drop(&c->in, c->head);
    return NULL;
}

/* Move what there is of the chunks to the body. */
static void read_chunks(connection *c) {
    size_t at = 0;
    const char *line;
    while (!c->done && at < c->in.length) {
        char *data = c->in.data + at;
        size_t rest = c->in.length - at, used = rest < c->left ? rest : c->left;
        if (c->chunk == DATA || c->chunk == AFTER_DATA) {
            if (c->chunk == DATA) append(&c->body, data, used);
            at += used, c->left -= used;
            if (c->left) continue;
            if (c->chunk == DATA) c->chunk = AFTER_DATA, c->left = 2;
            else c->chunk = SIZE;
        } else if (!(line = memchr(data, '\n', rest))) {
            break;
        } else {
            at += (size_t)(line - data) + 1;
            if (c->chunk == TRAILERS) c->done = line - data <= 1;
            else c->left = strtoul(data, NULL, 16), c->chunk = c->left ? DATA : TRAILERS;
        }
    }
    drop(&c->in, at);
}

static void read_body(connection *c) {
    if (c->is_chunked) {
        read_chunks(c);
        return;
    }
    size_t used = c->in.length < c->left ? c->in.length : c->left;
    append(&c->body, c->in.data, used);
    drop(&c->in, used);
    c->left -= used;
    c->done = !c->left;
}

static void receive(connection *c) {
    reserve(&c->in, 65536);
    ssize_t count = recv(c->fd, c->in.data + c->in.length, c->in.capacity - c->in.length, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    c->received = now_ns();
    if (count <= 0) {
        fail(c, c->busy ? "the connection was closed" : "an idle connection was closed", NULL, 0);
        return;
    }
    c->in.length += (size_t)count;
    const char *error = c->busy ? NULL : "an answer that nobody asked for";
    if (!error && !c->head) error = read_head(c);
    if (!error && c->head) {
        read_body(c);
        if (options.events) error = judge_events(c);
        if (!error && c->done) error = judge_end(c);
    }
    if (error) {
        buffer *shown = c->head ? &c->body : &c->in;
        fail(c, error, shown->data, shown->length);
    } else if (c->done) {
        answers++;
        record(&latencies, (double)(c->received - c->due) / 1e6);
        c->body.length = 0;
        go_on(c, now_ns());
    }
}

/* ---- the measurement ---- */

/* The processor time of a process, its threads and its descendants so far, in nanoseconds. */
static double read_cpu(int pid) {
    char path[300], line[4096];
    double total = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    struct dirent *task;
    while (folder && (task = readdir(folder))) {
        if (task->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, task->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(line, sizeof line, file)) total += strtod(line, NULL);
        if (file) fclose(file);
        snprintf(path, sizeof path, "/proc/%d/task/%s/children", pid, task->d_name);
        if ((file = fopen(path, "r")) && fgets(line, sizeof line, file))
            for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) total += read_cpu(atoi(word));
        if (file) fclose(file);
    }
    if (folder) closedir(folder);
    return total;
}

static double read_own_cpu(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

static int compare(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Print the median and the 99th percentile, by the nearest rank. */
static void print_samples(const char *name, samples *s) {
    if (!s->count) {
        printf("\"%s_p50\": null, \"%s_p99\": null, ", name, name);
        return;
    }
    qsort(s->values, s->count, sizeof *s->values, compare);
    double half = s->values[(s->count - 1) / 2], most = s->values[(s->count * 99 + 99) / 100 - 1];
    printf("\"%s_p50\": %.4f, \"%s_p99\": %.4f, ", name, half, name, most);
}

static void print_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e ? ' ' : *text);
    }
    putchar('"');
}

static void print_result(double spent, const double *cpu, double own) {
    printf("{\"seconds\": %.6f, \"answers\": %ld, \"tokens\": %ld, \"errors\": %ld, ", spent / 1e9, answers, tokens, errors);
    print_samples("latency_ms", &latencies);
    print_samples("first_token_ms", &first_tokens);
    print_samples("delay_us", &delays);
    printf("\"cpu_ns\": [");
    for (int i = 0; i < options.pid_count; i++) printf("%s%.0f", i ? ", " : "", cpu[i]);
    printf("], \"own_cpu_ns\": %.0f, \"error\": ", own);
    print_text(first_error);
    printf("}\n");
}

static void begin_window(double *cpu, double *own) {
    for (int i = 0; i < options.pid_count; i++) cpu[i] = read_cpu(options.pids[i]);
    *own = read_own_cpu();
    answers = tokens = 0;
    measures = 1;
}

/* In an open loop, what has not been answered has waited until now. */
static void record_unanswered(uint64_t now) {
    for (int i = 0; i < options.connections; i++)
        if (all[i].busy) record(&latencies, (double)(now - all[i].due) / 1e6);
    for (; queued; queued--) {
        double due = (double)began + (double)(sent_requests++) * 1e9 / options.rate;
        record(&latencies, ((double)now - due) / 1e6);
    }
}

/* Send what is due by the schedule, and return when the next request is. */
static uint64_t send_due(uint64_t now) {
    uint64_t due = began + (uint64_t)((double)(sent_requests + queued) * 1e9 / options.rate);
    while (due <= now) {
        connection *c = take_idle();
        if (c) sent_requests++, send_request(c, due);
        else queued++;
        due = began + (uint64_t)((double)(sent_requests + queued) * 1e9 / options.rate);
    }
    return due;
}

static int start_connections(int started, uint64_t elapsed) {
    double step = options.spread * 1e9 / options.connections;
    for (; started < options.connections && (double)elapsed >= started * step; started++)
        if (options.rate) set_idle(&all[started]);
        else send_request(&all[started], now_ns());
    return started;
}

static void run(void) {
    double cpu[MOST_PIDS] = {0}, own = 0;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0), started = 0;
    uint64_t begin = now_ns(), measured = begin + (uint64_t)(options.warm_up * 1e9), expired, now;
    uint64_t end = measured + (uint64_t)(options.seconds * 1e9);
    struct epoll_event found[256];
    began = begin;
    watch(epoll, EPOLL_CTL_ADD, timer, EPOLLIN, &timer);
    while ((now = now_ns()) < end || options.answers) {
        if (options.answers && measures && answers >= options.answers) break;
        if (errors >= MOST_ERRORS) break;
        if (!measures && now >= measured) begin_window(cpu, &own), measured = now_ns();
        started = start_connections(started, now - begin);
        uint64_t due = measures ? end : measured;
        if (started < options.connections || options.answers) due = now + 1000000;
        if (options.rate) {
            uint64_t next = send_due(now);
            due = next < due ? next : due;
        }
        set_timer(timer, due);
        int ready = epoll_wait(epoll, found, 256, -1);
        for (int i = 0; i < ready; i++) {
            connection *c = found[i].data.ptr;
            if (found[i].data.ptr == &timer) {
                if (read(timer, &expired, sizeof expired) < 0) die("timer");
                continue;
            }
            if (found[i].events & EPOLLOUT && c->sent < options.request.length) send_rest(c);
            if (found[i].events & ~(uint32_t)EPOLLOUT) receive(c);
        }
    }
    double spent = (double)(now_ns() - measured);
    for (int i = 0; i < options.pid_count; i++) cpu[i] = read_cpu(options.pids[i]) - cpu[i];
    if (options.rate) record_unanswered(now_ns());
    print_result(spent, cpu, read_own_cpu() - own);
}

static void read_options(int count, char **words) {
    if (count < 2) die("load PORT [options] < REQUEST");
    options.port = atoi(words[1]);
    options.needle = "";
    for (int i = 2; i + 1 < count; i += 2) {
        const char *name = words[i], *value = words[i + 1];
        if (!strcmp(name, "--connections")) options.connections = atoi(value);
        else if (!strcmp(name, "--seconds")) options.seconds = atof(value);
        else if (!strcmp(name, "--warm-up")) options.warm_up = atof(value);
        else if (!strcmp(name, "--spread")) options.spread = atof(value);
        else if (!strcmp(name, "--rate")) options.rate = atof(value);
        else if (!strcmp(name, "--answers")) options.answers = atol(value);
        else if (!strcmp(name, "--events")) options.events = atoi(value);
        else if (!strcmp(name, "--needle")) options.needle = value;
        else if (!strcmp(name, "--pid") && options.pid_count < MOST_PIDS) options.pids[options.pid_count++] = atoi(value);
        else fprintf(stderr, "load: unknown option %s\n", name), exit(2);
    }
    char data[65536];
    size_t length;
    while ((length = fread(data, 1, sizeof data, stdin))) append(&options.request, data, length);
}

int main(int count, char **words) {
    read_options(count, words);
    epoll = epoll_create1(0);
    all = calloc((size_t)options.connections, sizeof *all);
    if (!all) die("calloc");
    for (int i = 0; i < options.connections; i++) open_connection(&all[i]);
    run();
    return 0;
}
