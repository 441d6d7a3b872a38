// SPDX-License-Identifier: GPL-2.0
/*
 * The twists: how a reply violates the protocol.
 */
#include <err.h>
#include <stdlib.h>
#include <time.h>

#include "target.h"

static void twist_silent(struct queue *queue, struct reply *reply)
{
	reply->silent = true;
}

static void twist_hang_up(struct queue *queue, struct reply *reply)
{
	reply->hang_up = true;
}

/* CC.SHN in the value of a Property Set. */
#define SHUTDOWN	(3 << 14)

/* Disconnects the I/O queues at a shutdown, before the reply. */
static void twist_part(struct queue *queue, struct reply *reply)
{
	if (get(reply->sqe + 48, 4) & SHUTDOWN)
		part_io_queues();
}

/* Bits of a status: index of the command retry delay (CRD). */
#define STATUS_DELAY	0x1800

/* Replies with VALUE as status, and OFFSET as result. */
static void twist_status(struct queue *queue, struct reply *reply)
{
	reply->status = keeps_delay ? value : value & ~(uint64_t)STATUS_DELAY;
	reply->result = offset;
	reply->data_length = 0;
	reply->silent = false;
}

/* Replies with VALUE as status, after the data. */
static void twist_fault(struct queue *queue, struct reply *reply)
{
	reply->status = value;
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

/* Fills 256 bytes, the length of the longest string field, with one byte. */
static void twist_flood(struct queue *queue, struct reply *reply)
{
	memset(queue->memory->data + offset, value, LONGEST_POKE);
}

/* Stores another number each time. */
static void twist_drift(struct queue *queue, struct reply *reply)
{
	static uint64_t times;

	put(queue->memory->data + offset, ++times, 8);
}

/* Writes only VALUE bytes of data. */
static void twist_short(struct queue *queue, struct reply *reply)
{
	reply->data_length = value;
}

/* Lists 1024 namespaces after the NSID of the command, so that the list continues without end. */
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

/* Invalidates another key than the command's, also if the command has none. */
static void twist_key(struct queue *queue, struct reply *reply)
{
	reply->invalidate = reply->rkey ^ value;
}

/* Invalidates the key of an earlier command of any connection. */
static void twist_stale(struct queue *queue, struct reply *reply)
{
	static uint32_t keys[8];
	unsigned int at = value % ARRAY_SIZE(keys);

	if (keys[at])
		reply->invalidate = keys[at];
	keys[at] = reply->rkey;
}

/* Leaves the first command unanswered, and invalidates its key with the reply to the second. */
static void twist_swap(struct queue *queue, struct reply *reply)
{
	static uint32_t kept;

	if (kept)
		reply->invalidate = kept;
	else
		reply->silent = true;
	kept = reply->rkey;
}

/* Writes the data after the reply, when the host has reclaimed its memory. */
static void twist_late(struct queue *queue, struct reply *reply)
{
	reply->data_last = true;
}

/* Writes the data VALUE milliseconds after the reply, or after SIGUSR1. The reply invalidates no key. */
static void twist_keep_late(struct queue *queue, struct reply *reply)
{
	reply->invalidate = 0;
	reply->data_last = true;
	reply->pause = value;
}

/* Writes the data at an address that is wrong by VALUE. */
static void twist_move(struct queue *queue, struct reply *reply)
{
	reply->address += value;
}

/* Writes to memory that the target may only read. */
static void twist_steal(struct queue *queue, struct reply *reply)
{
	reply->data_length = 8;
}

/* Writes the data with immediate data, in place of a reply. */
static void twist_immediate(struct queue *queue, struct reply *reply)
{
	reply->immediate = true;
	reply->copies = 0;
}

/* Posts no receive again until SIGUSR1, so that the host gets RNR NAKs. */
static void twist_deaf(struct queue *queue, struct reply *reply)
{
	queue->deaf = true;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now))
		err(1, "clock_gettime");
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/*
 * A write that outlives its connection. The target keeps the first one. When it has executed the second
 * write of later connections, it executes the old one. It does not if the write is older than VALUE
 * milliseconds: the old association has ended then. Returns whether the write is kept.
 */
static bool outlives(void)
{
	static uint64_t since;
	static unsigned int later;

	if (!since) {
		since = now_ms();
		keep_write();
		return true;
	}
	if (++later == 2) {
		if (now_ms() - since > value) {
			printf("- ended\n");
		} else {
			land_write();
			printf("- landed\n");
		}
	}
	return false;
}

/* The write outlives its connection, and the target ignores its controller from then on. */
static void twist_outlive(struct queue *queue, struct reply *reply)
{
	if (outlives()) {
		mute_queues(queue->controller);
		reply->silent = true;
	}
}

/* The write outlives its connection, which the target ends. */
static void twist_outlive_end(struct queue *queue, struct reply *reply)
{
	reply->hang_up = outlives();
}

/* Before the reply, ends the connection of the admin queue in a firmware activation. */
static void twist_activate(struct queue *queue, struct reply *reply)
{
	activate_firmware();
}

static const struct twist twists[] = {
	{ "silent", twist_silent }, { "hang-up", twist_hang_up }, { "status", twist_status },
	{ "result", twist_result }, { "poke", twist_poke }, { "fill", twist_fill },
	{ "length", twist_length }, { "twice", twist_twice }, { "cid", twist_cid },
	{ "keep", twist_keep }, { "key", twist_key }, { "swap", twist_swap },
	{ "late", twist_late }, { "move", twist_move }, { "flood", twist_flood },
	{ "drift", twist_drift }, { "short", twist_short }, { "steal", twist_steal },
	{ "deaf", twist_deaf }, { "stale", twist_stale }, { "keep-late", twist_keep_late },
	{ "head", twist_head }, { "outlive", twist_outlive },
	{ "outlive-end", twist_outlive_end },
	{ "part", twist_part }, { "activate", twist_activate },
	{ "fault", twist_fault }, { "immediate", twist_immediate },
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
 * Each connection changes one in RANDOM_MOST to random_least of its replies: RARELY in the environment.
 * With many changes few connects succeed; with few there is I/O.
 */
#define RANDOM_MOST	2
static unsigned long random_least = 9;
/*
 * Metadata stays part of the extended LBA (FLBAS): EXTENDED in the environment. nvme-core warns about other
 * metadata.
 */
static bool extended;
#define FLBAS		26
#define META_EXT	(1 << 4)
/* One in this many connection requests is refused. */
#define REFUSED_ONE_IN	24

/* Longest delay of keep-late, in milliseconds. */
#define LONGEST_PAUSE	50

void begin_random(uint64_t seed)
{
	random_state = random_begin(seed);
	if (getenv("RARELY"))
		random_least = strtoul(getenv("RARELY"), NULL, 0);
	if (random_least < RANDOM_MOST)
		random_least = RANDOM_MOST;
	extended = getenv("EXTENDED");
}

static uint64_t random_number(void)
{
	return random_next(&random_state);
}

/* Whether the host's time-out for the reply is short enough for a test. */
static bool may_be_silent(enum step step)
{
	switch (step) {
	case LIST: case NAMESPACE: case DESCRIPTORS: case INDEPENDENT: case CHANGED: case EFFECTS:
		return false;
	default:
		return true;
	}
}

/* One in this many silent choices takes effect: each costs the test a time-out. */
#define SILENCE_ONE_IN	8

static const char *const random_names[] = {
	"poke", "poke", "poke", "poke", "poke", "result", "result", "status", "status", "fill",
	"flood", "drift", "length", "short", "twice", "cid", "keep", "key", "stale", "late",
	"keep-late", "move", "steal", "deaf", "hang-up", "silent",
};

/* Chooses the parameters of a twist. */
static void choose_numbers(const struct twist *each, const struct reply *reply)
{
	value = random_of_any_length(&random_state);
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
		queue->one_in = RANDOM_MOST + random_number() % (random_least - RANDOM_MOST + 1);
	each = find_twist(random_names[random_number() % ARRAY_SIZE(random_names)]);
	if (random_number() % queue->one_in)
		return;
	if (each->apply == twist_silent && (random_number() % SILENCE_ONE_IN || !may_be_silent(step)))
		each = find_twist("hang-up");
	choose_numbers(each, reply);
	printf("- broken %s %s %#llx %u %u\n", step_names[step], each->name,
	       (unsigned long long)value, offset, size);
	each->apply(queue, reply);
	if (extended && step == NAMESPACE)
		queue->memory->data[FLBAS] |= META_EXT;
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
