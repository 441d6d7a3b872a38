// SPDX-License-Identifier: GPL-2.0
/*
 * What a target does instead of what it should.
 */
#include <err.h>

#include "target.h"

static void twist_silent(struct queue *queue, struct reply *reply)
{
	reply->silent = true;
}

static void twist_hang_up(struct queue *queue, struct reply *reply)
{
	reply->hang_up = true;
}

/* Where a status says how long to wait before another attempt. */
#define STATUS_DELAY	0x1800

/* An error of this status; with the result that OFFSET is. */
static void twist_status(struct queue *queue, struct reply *reply)
{
	reply->status = keeps_delay ? value : value & ~(uint64_t)STATUS_DELAY;
	reply->result = offset;
	reply->data_length = 0;
	reply->silent = false;
}

static void twist_result(struct queue *queue, struct reply *reply)
{
	reply->result = value;
	reply->silent = false;
}

static void twist_head(struct queue *queue, struct reply *reply)
{
	reply->head = value;
}

static void twist_poke(struct queue *queue, struct reply *reply)
{
	put(queue->memory->data + offset, value, size);
}

#define LONGEST_POKE	256

/* One byte over and over, as much as a text has room for. */
static void twist_flood(struct queue *queue, struct reply *reply)
{
	memset(queue->memory->data + offset, value, LONGEST_POKE);
}

/* Another number each time. */
static void twist_drift(struct queue *queue, struct reply *reply)
{
	static uint64_t times;

	put(queue->memory->data + offset, ++times, 8);
}

/* Less data than was asked for. */
static void twist_short(struct queue *queue, struct reply *reply)
{
	reply->data_length = value;
}

/* A full page of namespaces after the one that is asked about, up to the very last. */
static void twist_fill(struct queue *queue, struct reply *reply)
{
	uint32_t nsid = get(reply->sqe + 4, 4);
	unsigned int at;

	for (at = 0; at < IDENTIFY_SIZE; at += 4)
		put(queue->memory->data + at, ++nsid, 4);
}

static void twist_length(struct queue *queue, struct reply *reply)
{
	if (value > LONGEST_REPLY)
		errx(1, "a reply has %d bytes at most", LONGEST_REPLY);
	reply->length = value;
}

static void twist_twice(struct queue *queue, struct reply *reply)
{
	reply->copies = 2;
}

static void twist_cid(struct queue *queue, struct reply *reply)
{
	reply->cid ^= value;
}

static void twist_keep(struct queue *queue, struct reply *reply)
{
	reply->invalidate = 0;
}

/* Invalidates another key than that of the command, which may have none. */
static void twist_key(struct queue *queue, struct reply *reply)
{
	reply->invalidate = reply->rkey ^ value;
}

/* Invalidates the key of a command that came before, of whichever connection. */
static void twist_stale(struct queue *queue, struct reply *reply)
{
	static uint32_t keys[8];
	unsigned int at = value % ARRAY_SIZE(keys);

	if (keys[at])
		reply->invalidate = keys[at];
	keys[at] = reply->rkey;
}

/* Keeps a first command, and invalidates its key with the answer to the second. */
static void twist_swap(struct queue *queue, struct reply *reply)
{
	static uint32_t kept;

	if (kept)
		reply->invalidate = kept;
	else
		reply->silent = true;
	kept = reply->rkey;
}

/* Writes the data once the host has its memory back. */
static void twist_late(struct queue *queue, struct reply *reply)
{
	reply->data_last = true;
}

/* The same VALUE milliseconds later, and it leaves it to the host to make the key invalid. */
static void twist_keep_late(struct queue *queue, struct reply *reply)
{
	reply->invalidate = 0;
	reply->data_last = true;
	reply->pause = value;
}

/* Writes the data to where it does not belong: so many bytes from where it does. */
static void twist_move(struct queue *queue, struct reply *reply)
{
	reply->address += value;
}

/* Writes to what is the target's to read. */
static void twist_steal(struct queue *queue, struct reply *reply)
{
	reply->data_length = 8;
}

/* Posts no receive any more that was taken by a command, until SIGUSR1. */
static void twist_deaf(struct queue *queue, struct reply *reply)
{
	queue->deaf = true;
}

static const struct twist twists[] = {
	{ "silent", twist_silent }, { "hang-up", twist_hang_up }, { "status", twist_status },
	{ "result", twist_result }, { "poke", twist_poke }, { "fill", twist_fill },
	{ "length", twist_length }, { "twice", twist_twice }, { "cid", twist_cid },
	{ "keep", twist_keep }, { "key", twist_key }, { "swap", twist_swap },
	{ "late", twist_late }, { "move", twist_move }, { "flood", twist_flood },
	{ "drift", twist_drift }, { "short", twist_short }, { "steal", twist_steal },
	{ "deaf", twist_deaf }, { "stale", twist_stale }, { "keep-late", twist_keep_late },
	{ "head", twist_head },
};
const struct twist *find_twist(const char *name)
{
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(twists); n++)
		if (!strcmp(name, twists[n].name))
			return &twists[n];
	return NULL;
}

void print_twists(FILE *out)
{
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(twists); n++)
		fprintf(out, " %s", twists[n].name);
}

/* The state of the random mode; 0 without it. */
static uint64_t random_state;
/*
 * One reply of so many is broken in it, by the connection: where many are, few connects come to
 * their end, and where few are, there is I/O.
 */
#define RANDOM_MOST	2
#define RANDOM_LEAST	9
/* And so is one request for a connection. */
#define REFUSED_ONE_IN	24

/* Milliseconds. */
#define LONGEST_PAUSE	50

/* Seeds that differ little shall not. */
void begin_random(uint64_t seed)
{
	random_state = (seed + 1) * 0x9e3779b97f4a7c15;
}

static uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* A number of few bits as often as one of many. */
static uint64_t random_value(void)
{
	unsigned int shift = random_number() % 64;

	return random_number() >> shift;
}

/* Whether a host waits for the answer no longer than a test has the patience for. */
static bool may_be_silent(enum step step)
{
	switch (step) {
	case LIST: case NAMESPACE: case DESCRIPTORS: case CHANGED: case EFFECTS:
		return false;
	default:
		return true;
	}
}

/* Most are lies. Silence is seldom, for each takes as long as a time limit. */
#define SILENCE_ONE_IN	8

static const char *const random_names[] = {
	"poke", "poke", "poke", "poke", "poke", "result", "result", "status", "status", "fill",
	"flood", "drift", "length", "short", "twice", "cid", "keep", "key", "stale", "late",
	"keep-late", "move", "steal", "deaf", "hang-up", "silent",
};

/* What a twist is done with. */
static void choose_numbers(const struct twist *each, const struct reply *reply)
{
	value = random_value();
	size = 1 + random_number() % 8;
	offset = random_number() % (IDENTIFY_SIZE - LONGEST_POKE);
	if (each->apply == twist_length)
		value %= LONGEST_REPLY + 1;
	else if (each->apply == twist_short)
		value %= reply->data_length + 1;
	else if (each->apply == twist_keep_late)
		value %= LONGEST_PAUSE + 1;
}

void break_at_random(struct queue *queue, enum step step, struct reply *reply)
{
	const struct twist *each;

	if (!random_state)
		return;
	if (!queue->one_in)
		queue->one_in = RANDOM_MOST + random_number() % (RANDOM_LEAST - RANDOM_MOST + 1);
	each = find_twist(random_names[random_number() % ARRAY_SIZE(random_names)]);
	if (random_number() % queue->one_in)
		return;
	if (each->apply == twist_silent && (random_number() % SILENCE_ONE_IN || !may_be_silent(step)))
		each = find_twist("hang-up");
	choose_numbers(each, reply);
	printf("- broken %s %s %#llx %u %u\n", step_names[step], each->name,
	       (unsigned long long)value, offset, size);
	each->apply(queue, reply);
}

enum fate fate_at_random(void)
{
	if (!random_state || random_number() % REFUSED_ONE_IN)
		return ACCEPTED;
	if (!(random_number() % SILENCE_ONE_IN)) {
		printf("- broken request silent\n");
		return IGNORED;
	}
	value = random_number() % 12;
	offset = random_number() % 5;
	printf("- broken request reject %#llx %u\n", (unsigned long long)value, offset);
	return REJECTED;
}
