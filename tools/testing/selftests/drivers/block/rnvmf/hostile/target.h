/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of hostile_target.c know of one another.
 */
#ifndef HOSTILE_TARGET_H
#define HOSTILE_TARGET_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define SQE_SIZE	64
#define CQE_SIZE	16
#define IDENTIFY_SIZE	4096
#define INLINE_SIZE	4096
#define LONGEST_REPLY	64
/* What a host sends at most that was not told of a limit. */
#define MAX_TRANSFER	(1024 * 1024)
#define MAX_ENTRIES	64
/* More than the host may have in flight, for each is posted again after its answer. */
#define RECEIVES	(2 * MAX_ENTRIES)

/* What a host asks for. */
enum step {
	REQUEST, CONNECT_ADMIN, CONNECT_IO, CAPABILITIES, STATUS, PROPERTY, CONFIGURE,
	CONTROLLER, LIST, NAMESPACE, DESCRIPTORS, LOG, ENTRIES, QUEUES, KEEP_ALIVE,
	EVENTS, EVENT, CHANGED, READ, WRITE, FLUSH, DISCARD, ZEROES,
	TRAP_READ, TRAP_WRITE, EFFECTS, FORMAT, BEHAVIOR, OTHER,
	STEPS,
};

struct capsule {
	uint8_t sqe[SQE_SIZE];
	uint8_t data[INLINE_SIZE];
};

/* What the hardware reads and writes of a queue. */
struct memory {
	struct capsule capsules[RECEIVES];
	uint8_t data[MAX_TRANSFER];
	uint8_t reply[LONGEST_REPLY];
};

struct queue {
	struct queue *next;
	struct rdma_cm_id *id;
	struct ibv_cq *receives;
	struct ibv_cq *sends;
	struct ibv_comp_channel *departures;
	struct ibv_mr *mr;
	struct memory *memory;
	unsigned int qid;
	/* In the random mode one reply of so many is broken. */
	unsigned int one_in;
	/* Where receives are that wait for a host to be heard again, and how many they are. */
	bool deaf;
	unsigned int kept[RECEIVES];
	unsigned int nr_kept;
	/* It was hung up, perhaps before the connection is known to be established. */
	bool over;
	/* Its connection has ended: it is freed as soon as nothing of it is being served. */
	bool ended;
};

struct reply {
	const uint8_t *sqe;
	uint64_t result;
	/* Where the target is in the submission queue, which it may not tell the truth of. */
	uint16_t head;
	uint16_t cid;
	uint16_t status;
	unsigned int length;
	unsigned int copies;
	/* How much of the queue's data goes to the host, and where to. */
	unsigned int data_length;
	uint64_t address;
	uint32_t rkey;
	/* The key to invalidate with the reply, or 0. */
	uint32_t invalidate;
	bool silent;
	bool hang_up;
	bool data_last;
	/* Milliseconds between the reply and such data. */
	unsigned int pause;
};

struct twist {
	const char *name;
	void (*apply)(struct queue *queue, struct reply *reply);
};
/* The command line: what a twist does it with. */
extern uint64_t value;
extern unsigned int offset;
extern unsigned int size;
extern const char *address;
extern const char *port;
/*
 * With EVENTS in the environment it tells of events: so many times at once that namespaces changed,
 * and then it keeps the request.
 */
extern bool tells;
extern unsigned long events;
/* Milliseconds until it says what it has: SLOW in the environment. */
extern unsigned long slow;
/* Each delay of retries, in units of 100 ms: DELAY in the environment. */
extern unsigned long delay;
/* The host keeps to it: a status that asks for it does not before. */
extern bool keeps_delay;
/*
 * So many namespaces there are, which show the same blocks: NAMESPACES in the environment; and with
 * OTHER the one of this number is another one than without.
 */
extern unsigned long namespaces;
extern unsigned long other;
/* The namespaces have this EUI-64 instead of a UUID: EUI in the environment. */
extern uint64_t eui;
/* Entries of the discovery log: LOGGED in the environment. */
extern unsigned long logged;

/* hostile_target.c */

/* Moves data between the queue's memory and the host's. */
bool move(struct queue *queue, enum ibv_wr_opcode opcode, unsigned int length, uint64_t address,
	  uint32_t rkey);

/* hostile/answer.c */

extern const char *const step_names[STEPS];

/* Which step a command is. */
enum step step_of(const struct queue *queue, const uint8_t *sqe);

/* What a target answers that keeps to the protocol. */
void answer(struct queue *queue, const struct capsule *capsule, enum step step,
	    struct reply *reply);

/* hostile/check.c */

/* Ends the target, which fails the test: the host sent what no host may. */
void accuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Looks at a command for what a host must not send, such as what its memory had before. */
void check_capsule(const struct queue *queue, const uint8_t *sqe, unsigned int length);

/* The command's data is so many bytes. */
void check_length(const uint8_t *sqe, unsigned int length);

/* These bytes of what the host sent are zero. */
void check_zeroes(const char *what, const uint8_t *bytes, unsigned int at, unsigned int end);

/* hostile/twist.c */

/* The twist of a name; NULL if there is none. */
const struct twist *find_twist(const char *name);

/* The names of all, each after a space. */
void print_twists(FILE *out);

/* From here on some replies are broken at random, in a sequence that SEED makes. */
void begin_random(uint64_t seed);

/* Breaks a reply in a way of its own, or leaves it as it is, as it always is without a seed. */
void break_at_random(struct queue *queue, enum step step, struct reply *reply);

/* What comes of a connection that is asked for, by the same sequence. */
enum fate { ACCEPTED, REJECTED, IGNORED };
enum fate fate_at_random(void);

/* Numbers as they are on the wire. */

static inline void put(uint8_t *at, uint64_t number, unsigned int bytes)
{
	uint64_t little = htole64(number);

	memcpy(at, &little, bytes);
}

static inline uint64_t get(const uint8_t *at, unsigned int bytes)
{
	uint64_t little = 0;

	memcpy(&little, at, bytes);
	return le64toh(little);
}
#endif
