// SPDX-License-Identifier: GPL-2.0
/*
 * An NVMe/RDMA host that violates the protocol.
 *
 * The arguments are steps. A step is the name of a command, or of an action on a connection, with the
 * fields that differ from a correct one: `read,nlb=0,len=100`. Each step that waits prints a line with
 * what came back, so that a test can compare. The program waits for a line on its standard input
 * where a test must act: step `stop`.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "hostile/host.h"

#define MAX_QUEUES	33

const char *address;
const char *port;
const char *source_address;
unsigned int patience = 10000;
unsigned int keep_alive;

static struct queue *queues[MAX_QUEUES];
static unsigned int nr_queues;
/* The queue that commands are sent on. */
static struct queue *queue;
static uint16_t next_cid = 1;
/* Number of commands in flight with each identifier. */
static unsigned int in_flight[0x10000];

static void usage(void)
{
	fprintf(stderr, "usage: hostile_host ADDRESS PORT NQN STEP[,FIELD=VALUE...]...\n"
		"       hostile_host ADDRESS PORT NQN random SEED COUNT\n"
		"steps: admin,kato= io,qid= cm flood,count=,sources= use,queue= wait,count= quiet,ms= "
		"alive,seconds= fill changed rest bye break vanish stop\n"
		"fields of cm and flood: qid recfmt hrqsize hsqsize cntlid length responder no-rtu "
		"receives dest retry ack-timeout port source\n");
	command_usage(stderr);
	exit(2);
}

static unsigned long long number(const char *text)
{
	unsigned long long result;
	char *end;

	errno = 0;
	result = text ? strtoull(text, &end, 0) : 0;
	if (!text || errno || end == text || *end)
		usage();
	return result;
}

/* Connections. */

static void set_request(struct request *request, const char *field, const char *value)
{
	static const struct {
		const char *name;
		unsigned int offset;
	} fields[] = { { "recfmt", 0 }, { "qid", 2 }, { "hrqsize", 4 }, { "hsqsize", 6 }, { "cntlid", 8 } };
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(fields); n++)
		if (!strcmp(field, fields[n].name))
			return put(request->data + fields[n].offset, number(value), 2);
	if (!strcmp(field, "length"))
		request->length = number(value);
	else if (!strcmp(field, "responder"))
		request->responder_resources = number(value);
	else if (!strcmp(field, "receives"))
		request->receives = number(value);
	else if (!strcmp(field, "dest"))
		request->dest = number(value);
	else if (!strcmp(field, "retry"))
		request->retry_count = number(value);
	else if (!strcmp(field, "ack-timeout"))
		request->ack_timeout = number(value);
	/* That of later connections, too. */
	else if (!strcmp(field, "port"))
		port = value;
	else if (!strcmp(field, "source"))
		source_address = value;
	else if (!strcmp(field, "no-rtu"))
		request->no_rtu = true;
	else
		usage();
	if (request->length > PRIVATE_DATA || request->receives > WINDOW)
		usage();
}

static void print_verdict(const struct verdict *verdict)
{
	switch (verdict->fate) {
	case ACCEPTED:
		printf("cm accepted crqsize %u\n", verdict->crqsize);
		break;
	case REJECTED:
		printf("cm rejected reason %u recfmt %u sts %u\n", verdict->reason,
		       verdict->recfmt, verdict->status);
		break;
	case FAILED:
		printf("cm %s\n", verdict->event);
	}
}

/* Splits the next FIELD=VALUE off the fields of a step; returns the field, or NULL. */
static char *next_field(char **fields, char **value)
{
	char *field = strsep(fields, ",");

	*value = field;
	if (field)
		strsep(value, "=");
	return field;
}

static void keep(struct queue *opened)
{
	queue = opened;
	if (nr_queues == MAX_QUEUES)
		errx(2, "too many queues");
	queues[nr_queues++] = queue;
}

static void step_cm(char *fields)
{
	struct verdict verdict;
	struct request request;
	char *field, *value;

	request_make(&request, 0);
	while ((field = next_field(&fields, &value)))
		set_request(&request, field, value);
	keep(queue_open(&request, &verdict));
	print_verdict(&verdict);
}

static void step_flood(char *fields)
{
	struct flood flood = { .sources = 1 };
	char *field, *value;

	request_make(&flood.request, 0);
	while ((field = next_field(&fields, &value))) {
		if (!strcmp(field, "count"))
			flood.count = number(value);
		else if (!strcmp(field, "sources"))
			flood.sources = number(value);
		else
			set_request(&flood.request, field, value);
	}
	if (!flood.sources)
		usage();
	flood.source = source_address;
	flood_run(&flood);
}

/* Opens a queue and sends correct commands until it may be used. Prints nothing on success. */
static void step_admin(char *fields)
{
	char *value, *field = next_field(&fields, &value);

	keep_alive = field ? number(value) : 0;
	keep(session_admin());
	if (!queue)
		printf("admin failed\n");
}

static void step_io(char *fields)
{
	char *value, *field = next_field(&fields, &value);

	keep(session_io(field ? number(value) : 1));
	if (!queue)
		printf("io failed\n");
}

/* Commands. */

static const char *event_name(enum event event)
{
	switch (event) {
	case GONE:
		return "disconnected";
	case BROKEN:
		return "broken";
	default:
		return "silent";
	}
}

/* Waits for this number of responses, and prints the different outcomes with their numbers. */
static void await(const char *name, unsigned int count, bool show)
{
	struct response response;
	unsigned int same = 0, status = 0;
	enum event event = RESPONSE;

	for (; count; count--) {
		event = queue_wait(queue, patience, &response);
		if (event != RESPONSE)
			break;
		if (!in_flight[response.cid])
			errx(4, "the target violates the protocol: a response to no command");
		in_flight[response.cid]--;
		if (same && response.status != status) {
			printf("%s 0x%03x times %u\n", name, status, same);
			same = 0;
		}
		status = response.status;
		same++;
	}
	if (same == 1)
		printf("%s 0x%03x\n", name, status);
	else if (same)
		printf("%s 0x%03x times %u\n", name, status, same);
	if (show && same)
		printf("%s result %#llx\n", name, (unsigned long long)response.result);
	if (event != RESPONSE)
		printf("%s %s\n", name, event_name(event));
	else if (same && !status && !strcmp(name, "connect"))
		controller = response.result & 0xffff;
}

static void send_command(struct command *command)
{
	unsigned int n;

	for (n = 0; n < command->count; n++) {
		if (!command->same_cid)
			put(command->capsule.sqe + 2, next_cid++, 2);
		in_flight[get(command->capsule.sqe + 2, 2)]++;
		if (command->hold)
			return queue_hold(queue, &command->capsule);
		/* A queue pair in the error state shows in the wait. */
		if (!queue_send(queue, &command->capsule))
			break;
	}
	if (!command->nowait)
		await(command->name, command->count, command->show);
}

static bool step_command(const char *name, char *fields)
{
	struct command command;
	char *field, *value;

	if (!queue || !command_make(name, &command))
		return false;
	while ((field = next_field(&fields, &value)))
		if (!command_set(&command, field, value))
			usage();
	send_command(&command);
	return true;
}

/* Actions. */

static void forget(void)
{
	unsigned int n;

	for (n = 0; n < nr_queues; n++)
		if (queues[n] == queue)
			queues[n] = NULL;
	queue = NULL;
}

static void step_use(char *fields)
{
	char *value, *field = next_field(&fields, &value);

	if (!field || strcmp(field, "queue") || number(value) >= nr_queues)
		usage();
	queue = queues[number(value)];
}

/* Expects nothing to happen for a time. */
static void step_quiet(char *fields)
{
	struct response response;
	enum event event;
	char *value, *field = next_field(&fields, &value);

	if (!field || strcmp(field, "ms"))
		usage();
	event = queue_wait(queue, number(value), &response);
	if (event == RESPONSE)
		printf("quiet 0x%03x\n", response.status);
	else
		printf("quiet %s\n", event_name(event));
}

/* Sends a Keep Alive each second for a time, as long as the target answers. */
static void step_alive(char *fields)
{
	struct response response;
	struct command command;
	char *value, *field = next_field(&fields, &value);
	unsigned int seconds = 0;

	if (!field || strcmp(field, "seconds") || !command_make("keep-alive", &command))
		usage();
	for (; seconds < number(value); seconds++) {
		put(command.capsule.sqe + 2, next_cid++, 2);
		if (!queue_send(queue, &command.capsule) ||
		    queue_wait(queue, patience, &response) != RESPONSE || response.status)
			break;
		sleep(1);
	}
	printf("alive %u\n", seconds);
}

static void step_wait(char *fields)
{
	char *value, *field = next_field(&fields, &value);

	await("wait", field ? number(value) : 1, false);
}

/* What the data memory is filled with. */
#define PATTERN		0xa5

/* Prints how many bytes of the data memory have changed since `fill`. */
static void print_changed(void)
{
	unsigned int changed = 0, n;

	for (n = 0; n < DATA_SIZE; n++)
		changed += queue_data()[n] != PATTERN;
	printf("changed %u\n", changed);
}

/* Prints how many bytes behind OFFSET have data: they are neither those of `fill` nor zero. */
static void print_rest(unsigned int offset)
{
	unsigned int rest = 0, n;

	for (n = offset; n < DATA_SIZE; n++)
		rest += queue_data()[n] != PATTERN && queue_data()[n] != 0;
	printf("rest %u\n", rest);
}

static void step_stop(void)
{
	printf("stop\n");
	while (getchar() != '\n' && !feof(stdin))
		;
}

static void step(char *text)
{
	char *name = strsep(&text, ",");

	if (!strcmp(name, "cm"))
		return step_cm(text);
	if (!strcmp(name, "flood"))
		return step_flood(text);
	if (!strcmp(name, "admin"))
		return step_admin(text);
	if (!strcmp(name, "io"))
		return step_io(text);
	if (!strcmp(name, "stop"))
		return step_stop();
	if (!strcmp(name, "use"))
		return step_use(text);
	if (!strcmp(name, "vanish"))
		_exit(0);
	if (step_command(name, text))
		return;
	/* After a failed connect there is no queue; the steps that need one say so. */
	if (!queue) {
		printf("%s without a queue\n", name);
		return;
	}
	if (!strcmp(name, "wait"))
		return step_wait(text);
	if (!strcmp(name, "quiet"))
		return step_quiet(text);
	if (!strcmp(name, "alive"))
		return step_alive(text);
	if (!strcmp(name, "fill"))
		return (void)memset(queue_data(), PATTERN, DATA_SIZE);
	if (!strcmp(name, "changed"))
		return print_changed();
	if (!strcmp(name, "rest"))
		/* Behind the entries of the error log. */
		return print_rest(128 * 64);
	if (!strcmp(name, "break"))
		return queue_break(queue);
	if (strcmp(name, "bye"))
		usage();
	queue_close(queue);
	forget();
}

int main(int argc, char **argv)
{
	int n;

	if (argc < 5)
		usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	address = argv[1];
	port = argv[2];
	subsystem = argv[3];
	if (getenv("PATIENCE"))
		patience = number(getenv("PATIENCE"));
	if (!strcmp(argv[4], "random")) {
		if (argc != 7)
			usage();
		random_run(number(argv[5]), number(argv[6]));
		return 0;
	}
	for (n = 4; n < argc; n++)
		step(argv[n]);
	return 0;
}
