// SPDX-License-Identifier: GPL-2.0
/*
 * The random mode of hostile_host: correct connections and commands with random changes.
 */
#include <err.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

/* One in this many requests is a connection request. */
#define CONNECTION_ONE_IN	8
/* A session ends after one in this many commands, with whatever is in flight. */
#define END_ONE_IN		32
/* Commands that are sent before their responses are awaited. */
#define MOST_AT_ONCE		8
/* Longest time until a response, in milliseconds. An event request has none. */
#define PATIENCE_MS		300
/* Correct connects that may fail in a row: the target frees the controllers of earlier ones late. */
#define MOST_REFUSALS		100

enum outcome { ACCEPT, REJECT, NO_CONNECT, SUCCESS, STATUS, DISCONNECT, BREAK, NOTHING, LOST, OUTCOMES };

static const char *const names[OUTCOMES] = {
	"connections accepted", "connections rejected", "connections failed", "commands succeeded",
	"commands with an error status", "disconnected", "broken", "not answered",
	"commands lost with their connection",
};

static const char *const commands[] = {
	"connect", "set", "get", "auth-send", "auth-receive", "disconnect", "identify",
	"set-features", "get-log", "keep-alive", "event", "abort", "create-sq", "create-cq",
	"flush", "write", "read", "dsm", "zeroes", "register", "write", "read",
};

static const char *const fields[] = {
	"op", "flags", "cid", "nsid", "addr", "key", "type", "len", "len", "type", "addr",
	"cdw10", "cdw11", "cdw12", "cdw13", "cdw14", "cdw15",
};

/* GENTLE in the environment: leave out what is known to crash nvmet-rdma. */
static bool gentle;

static uint64_t state;
static unsigned long counts[OUTCOMES];
/* The session: a correct admin queue, and a correct I/O queue; NULL without. */
static struct queue *admin;
static struct queue *io;

static unsigned int below(unsigned int limit)
{
	return random_next(&state) % limit;
}

static void end_session(void)
{
	if (io)
		queue_close(io);
	if (admin)
		queue_close(admin);
	io = NULL;
	admin = NULL;
}

static void need_session(void)
{
	unsigned int refusals;

	for (refusals = 0; !io; refusals++) {
		if (refusals == MOST_REFUSALS)
			errx(3, "the target refuses correct connections");
		admin = session_admin();
		io = admin ? session_io(1) : NULL;
		if (io)
			return;
		end_session();
		usleep(20000);
	}
}

/* Changes bytes of the private data. Sends a correct command if the target accepts them. */
static void break_connection(void)
{
	struct verdict verdict;
	struct request request;
	struct queue *queue;
	unsigned int changes;

	request_make(&request, below(3));
	request.length = below(4) ? 32 : below(PRIVATE_DATA + 1);
	for (changes = 1 + below(3); changes; changes--)
		request.data[below(10)] = random_next(&state);
	if (gentle)
		request.data[5] = request.data[7] = 0;
	request.no_rtu = !below(4);
	queue = queue_open(&request, &verdict);
	counts[queue ? ACCEPT : verdict.fate == REJECTED ? REJECT : NO_CONNECT]++;
	if (!queue)
		return;
	if (!request.no_rtu)
		session_sends(queue, commands[below(ARRAY_SIZE(commands))], 0);
	queue_close(queue);
}

static void break_command(struct queue *queue, struct command *command)
{
	unsigned int way = below(8);
	char value[32];

	if (gentle && queue == admin && way == 2)
		way = 1;
	switch (way) {
	case 0: case 1: case 3:
		snprintf(value, sizeof(value), "%llu",
			 (unsigned long long)random_of_any_length(&state));
		command_set(command, fields[below(ARRAY_SIZE(fields))], value);
		break;
	case 2:
		snprintf(value, sizeof(value), "%u", below(6000));
		command_set(command, "inline", value);
		break;
	case 4:
		command->capsule.length = below(3) ? SQE_SIZE + below(6000) : below(SQE_SIZE);
		break;
	default:
		command->capsule.sqe[below(SQE_SIZE)] = random_next(&state);
		break;
	}
}

static void send_broken(struct queue *queue)
{
	struct command command;
	unsigned int changes;

	command_make(commands[below(ARRAY_SIZE(commands))], &command);
	put(command.capsule.sqe + 2, below(0x10000), 2);
	for (changes = 1 + below(2); changes; changes--)
		break_command(queue, &command);
	queue_send(queue, &command.capsule);
}

/* Counts how a command ended; returns whether the queue may still be used. */
static bool count_event(enum event event, const struct response *response)
{
	switch (event) {
	case RESPONSE:
		counts[response->status ? STATUS : SUCCESS]++;
		return true;
	case GONE:
		counts[DISCONNECT]++;
		return false;
	case BROKEN:
		counts[BREAK]++;
		return false;
	case SILENCE:
		counts[NOTHING]++;
		return true;
	}
	return false;
}

/* Sends some broken commands; returns their number. */
static unsigned int break_commands(void)
{
	struct response response;
	unsigned int number = below(4) ? 1 : 1 + below(MOST_AT_ONCE), n;
	bool usable = true, ends;
	struct queue *queue;

	need_session();
	queue = below(3) ? io : admin;
	ends = !below(END_ONE_IN);
	for (n = 0; n < number; n++)
		send_broken(queue);
	for (n = 0; n < number && usable && !ends; n++)
		usable = count_event(queue_wait(queue, PATIENCE_MS, &response), &response);
	counts[LOST] += number - n;
	if (!usable || ends)
		end_session();
	return number;
}

void random_run(uint64_t seed, unsigned long count)
{
	unsigned long sent = 0;
	unsigned int n;

	printf("seed %llu\n", (unsigned long long)seed);
	state = random_begin(seed);
	gentle = getenv("GENTLE");
	need_session();
	while (sent < count) {
		if (below(CONNECTION_ONE_IN)) {
			sent += break_commands();
		} else {
			break_connection();
			sent++;
		}
	}
	end_session();
	printf("broken requests %lu\n", sent);
	for (n = 0; n < OUTCOMES; n++)
		printf("%lu %s\n", counts[n], names[n]);
}
