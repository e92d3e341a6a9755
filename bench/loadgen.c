/* Replay one request over many connections as fast as the answers come back.
 *
 *   loadgen HOST PORT CONNECTIONS IN_FLIGHT SECONDS REQUESTS_MAX ERROR_AT < frames
 *
 * Standard input holds whole frames, each an int32 length and that many bytes. All but the last are a greeting: every
 * connection sends them once, in order, and waits for each answer before the clock starts. The last is the request;
 * each connection keeps IN_FLIGHT of it unanswered. Only the correlation id differs from one to the next; answers must
 * bring the ids back in order, and hold a zero int16 at ERROR_AT bytes behind the length: the error code.
 *
 * Stops after SECONDS, or after REQUESTS_MAX requests if that is not 0, then waits for the answers still due. Prints one
 * line of JSON. Anything unexpected is one sentence on standard error and exit code 1.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 4096,
    IN_FLIGHT_MAX = 4096,
    INPUT_MAX = 64 << 20,
    ANSWER_MAX = 1 << 20,   /* an answer with its length; a longer one ends the run */
    CORRELATION_AT = 8,     /* behind length, API key and version */
    DRAIN_SECONDS = 30,     /* how long answers still due are waited for at the end */
};

struct connection {
    int descriptor;
    int writable_wanted;       /* whether epoll watches for room in the send buffer */
    uint32_t sent, answered;   /* requests started and answered; their difference never exceeds in_flight */
    uint64_t bytes_unsent;     /* of the requests started, how many bytes the socket has not yet taken */
    uint8_t *requests;         /* in_flight copies of the request, used as a ring: request n lies in slot n % in_flight */
    uint64_t *started_ns;      /* when the request in each slot was started */
    uint8_t *answer;
    size_t answer_bytes;
};

static size_t frame_bytes;
static uint8_t *frame;
static uint32_t in_flight;
static size_t error_at;
static uint64_t started_total, answered_total, answered_in_time, requests_max;
static uint32_t *latencies_ns;
static size_t latencies_room;
static int epoll;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("loadgen: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        fail("no memory for %zu bytes", count * size);
    return memory;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t read_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return ntohl(value);
}

static void write_u32(uint8_t *at, uint32_t value)
{
    value = htonl(value);
    memcpy(at, &value, sizeof value);
}

static void write_fully(int descriptor, const uint8_t *bytes, size_t count)
{
    while (count) {
        ssize_t taken = write(descriptor, bytes, count);
        if (taken < 0)
            fail("cannot send: %s", strerror(errno));
        bytes += taken;
        count -= (size_t)taken;
    }
}

static void read_fully(int descriptor, uint8_t *bytes, size_t count)
{
    while (count) {
        ssize_t got = read(descriptor, bytes, count);
        if (got <= 0)
            fail("the broker closed the connection while it was greeted");
        bytes += got;
        count -= (size_t)got;
    }
}

static int dial(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int problem = getaddrinfo(host, port, &hints, &found);
    if (problem)
        fail("cannot resolve %s: %s", host, gai_strerror(problem));
    int descriptor = socket(found->ai_family, found->ai_socktype, 0), one = 1;
    if (descriptor < 0 || connect(descriptor, found->ai_addr, found->ai_addrlen) < 0)
        fail("cannot connect to %s:%s: %s", host, port, strerror(errno));
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    freeaddrinfo(found);
    return descriptor;
}

/* Send the greeting's frames one by one and read each answer. */
static void greet(int descriptor, const uint8_t *greeting, const uint8_t *end, uint8_t *scratch)
{
    while (greeting < end) {
        size_t bytes = 4 + (size_t)read_u32(greeting);
        write_fully(descriptor, greeting, bytes);
        read_fully(descriptor, scratch, 4);
        if (read_u32(scratch) > ANSWER_MAX)
            fail("an answer to the greeting claims %u bytes", read_u32(scratch));
        read_fully(descriptor, scratch, read_u32(scratch));
        greeting += bytes;
    }
}

/* Hand the socket what it will take of the started requests: the oldest unsent byte first. */
static void push(struct connection *connection)
{
    while (connection->bytes_unsent) {
        uint64_t ring_bytes = (uint64_t)in_flight * frame_bytes;
        uint64_t from = ((uint64_t)connection->sent * frame_bytes - connection->bytes_unsent) % ring_bytes;
        uint64_t front = connection->bytes_unsent;
        if (from + front > ring_bytes)
            front = ring_bytes - from;
        struct iovec parts[2] = {
            {connection->requests + from, front},
            {connection->requests, connection->bytes_unsent - front},
        };
        ssize_t taken = writev(connection->descriptor, parts, 2);
        if (taken < 0 && errno == EAGAIN)
            break;
        if (taken < 0)
            fail("cannot send: %s", strerror(errno));
        connection->bytes_unsent -= (uint64_t)taken;
    }
    int wanted = connection->bytes_unsent > 0;
    if (wanted != connection->writable_wanted) {
        struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = connection};
        epoll_ctl(epoll, EPOLL_CTL_MOD, connection->descriptor, &event);
        connection->writable_wanted = wanted;
    }
}

/* Start requests until the window is full, all with one write where the socket has room. */
static void fill(struct connection *connection, uint64_t now)
{
    while (connection->sent - connection->answered < in_flight && (!requests_max || started_total < requests_max)) {
        uint32_t slot = connection->sent % in_flight;
        write_u32(connection->requests + slot * frame_bytes + CORRELATION_AT, connection->sent);
        connection->started_ns[slot] = now;
        connection->sent++;
        connection->bytes_unsent += frame_bytes;
        started_total++;
    }
    push(connection);
}

static void note_latency(uint64_t elapsed_ns)
{
    if (answered_in_time == latencies_room) {
        latencies_room = latencies_room ? 2 * latencies_room : 1 << 20;
        latencies_ns = realloc(latencies_ns, latencies_room * sizeof *latencies_ns);
        if (!latencies_ns)
            fail("no memory for %zu latencies", latencies_room);
    }
    latencies_ns[answered_in_time++] = elapsed_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)elapsed_ns;
}

/* Read what has come and check every whole answer in it. */
static void pull(struct connection *connection, uint64_t deadline)
{
    ssize_t got = read(connection->descriptor, connection->answer + connection->answer_bytes,
                       ANSWER_MAX - connection->answer_bytes);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0)
        fail("the broker closed a connection after %lu answers", (unsigned long)answered_total);
    connection->answer_bytes += (size_t)got;
    uint64_t now = now_ns();
    size_t position = 0;
    while (connection->answer_bytes - position >= 4) {
        const uint8_t *answer = connection->answer + position;
        size_t bytes = 4 + (size_t)read_u32(answer);
        if (bytes > ANSWER_MAX || bytes < 4 + error_at + 2)
            fail("an answer has %zu bytes", bytes);
        if (connection->answer_bytes - position < bytes)
            break;
        if (connection->answered == connection->sent)
            fail("an answer came that nothing had asked for");
        if (read_u32(answer + 4) != connection->answered)
            fail("answer %u came where %u was due", read_u32(answer + 4), connection->answered);
        int16_t code = (int16_t)(answer[4 + error_at] << 8 | answer[5 + error_at]);
        if (code)
            fail("the broker answered with error code %d", code);
        if (now <= deadline)
            note_latency(now - connection->started_ns[connection->answered % in_flight]);
        connection->answered++;
        answered_total++;
        position += bytes;
    }
    connection->answer_bytes -= position;
    memmove(connection->answer, connection->answer + position, connection->answer_bytes);
}

static int by_size(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static double percentile_us(double share)
{
    return answered_in_time ? latencies_ns[(size_t)(share * (double)(answered_in_time - 1))] / 1e3 : 0;
}

static long number(const char *text, long least, long most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < least || value > most)
        fail("%s is not a number from %ld to %ld", text, least, most);
    return value;
}

int main(int count, char **arguments)
{
    if (count != 8)
        fail("usage: loadgen HOST PORT CONNECTIONS IN_FLIGHT SECONDS REQUESTS_MAX ERROR_AT < frames");
    long connections = number(arguments[3], 1, CONNECTIONS_MAX);
    in_flight = (uint32_t)number(arguments[4], 1, IN_FLIGHT_MAX);
    double seconds = atof(arguments[5]);
    requests_max = (uint64_t)number(arguments[6], 0, INT64_MAX);
    error_at = (size_t)number(arguments[7], 4, 4096);

    uint8_t *input = room(INPUT_MAX, 1);
    size_t input_bytes = fread(input, 1, INPUT_MAX, stdin);
    for (size_t position = 0; position < input_bytes; position += frame_bytes) {
        frame = input + position;
        frame_bytes = input_bytes - position < 4 ? SIZE_MAX : 4 + (size_t)read_u32(frame);
        if (frame_bytes < CORRELATION_AT + 4 || frame_bytes > input_bytes - position)
            fail("standard input does not hold whole frames");
    }
    if (!frame)
        fail("standard input holds no frame");

    epoll = epoll_create1(0);
    struct connection *all = room((size_t)connections, sizeof *all);
    for (long i = 0; i < connections; i++) {
        struct connection *connection = all + i;
        connection->requests = room(in_flight, frame_bytes);
        for (uint32_t slot = 0; slot < in_flight; slot++)
            memcpy(connection->requests + slot * frame_bytes, frame, frame_bytes);
        connection->started_ns = room(in_flight, sizeof *connection->started_ns);
        connection->answer = room(ANSWER_MAX, 1);
        connection->descriptor = dial(arguments[1], arguments[2]);
        greet(connection->descriptor, input, frame, connection->answer);
        fcntl(connection->descriptor, F_SETFL, O_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        epoll_ctl(epoll, EPOLL_CTL_ADD, connection->descriptor, &event);
    }

    uint64_t begin = now_ns(), now = begin, deadline = begin + (uint64_t)(seconds * 1e9);
    for (long i = 0; i < connections; i++)
        fill(all + i, now_ns());
    while (answered_total < started_total || (now < deadline && (!requests_max || started_total < requests_max))) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, 1000);
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                pull(connection, deadline);
            now = now_ns();
            if (now < deadline)
                fill(connection, now);
            else
                push(connection);
        }
        now = now_ns();
        if (now > deadline + DRAIN_SECONDS * 1000000000ull)
            fail("%lu answers are missing %d s after the end", (unsigned long)(started_total - answered_total),
                 DRAIN_SECONDS);
    }
    double elapsed = (double)((now < deadline ? now : deadline) - begin) / 1e9;
    if (answered_in_time)
        qsort(latencies_ns, answered_in_time, sizeof *latencies_ns, by_size);
    printf("{\"requests\": %lu, \"seconds\": %.6f, \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, "
           "\"p999_us\": %.1f, \"max_us\": %.1f}\n",
           (unsigned long)answered_in_time, elapsed, percentile_us(0.5), percentile_us(0.9), percentile_us(0.99),
           percentile_us(0.999), percentile_us(1.0));
    return 0;
}
