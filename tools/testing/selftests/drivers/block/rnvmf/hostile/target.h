/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces between the parts of hostile_target.
 */
#ifndef HOSTILE_TARGET_H
#define HOSTILE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "bytes.h"

#define IDENTIFY_SIZE	4096
#define INLINE_SIZE	4096
#define LONGEST_REPLY	64
/* The largest transfer: the host's own limit if MDTS reports none. */
#define MAX_TRANSFER	(1024 * 1024)
#define MAX_ENTRIES	64
/* More than the host may have in flight: a receive is posted again only after its reply. */
#define RECEIVES	(2 * MAX_ENTRIES)

/* Kinds of commands of a host. */
enum step {
	REQUEST, CONNECT_ADMIN, CONNECT_IO, CAPABILITIES, STATUS, PROPERTY, CONFIGURE,
	CONTROLLER, LIST, NAMESPACE, DESCRIPTORS, INDEPENDENT, LOG, ENTRIES, QUEUES, KEEP_ALIVE,
	EVENTS, EVENT, CHANGED, READ, WRITE, FLUSH, DISCARD, ZEROES,
	TRAP_READ, TRAP_WRITE, EFFECTS, FORMAT, BEHAVIOR, OTHER,
	STEPS,
};

struct capsule {
	uint8_t sqe[SQE_SIZE];
	uint8_t data[INLINE_SIZE];
};

/* Memory of a queue that the device accesses. */
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
	/* The controller identifier of its association, after Connect. */
	uint16_t controller;
	/* In the random mode one in this many replies is changed. */
	unsigned int one_in;
	/* Command identifier of the Asynchronous Event Request that is pending. */
	uint16_t event_cid;
	/* While the queue is deaf: the receives that are not posted again, and their number. */
	bool deaf;
	unsigned int kept[RECEIVES];
	unsigned int nr_kept;
	/* The target ignores all commands, and does not acknowledge a disconnect. */
	bool mute;
	/* hang_up() was called, possibly before RDMA_CM_EVENT_ESTABLISHED. */
	bool over;
	/* The connection has ended; the queue is freed when no command of it is being served. */
	bool ended;
};

struct reply {
	const uint8_t *sqe;
	uint64_t result;
	/* SQHD */
	uint16_t head;
	uint16_t cid;
	uint16_t status;
	unsigned int length;
	unsigned int copies;
	/* Length, address and key of the data that is written to the host. */
	unsigned int data_length;
	uint64_t address;
	uint32_t rkey;
	/* The key that the reply invalidates, or 0. */
	uint32_t invalidate;
	bool silent;
	bool hang_up;
	bool data_last;
	/* The data is written with immediate data, which consumes a receive of the host. */
	bool immediate;
	/* Longest time between the reply and the data in milliseconds, with data_last. SIGUSR1 ends it. */
	unsigned int pause;
};

struct twist {
	const char *name;
	void (*apply)(struct queue *queue, struct reply *reply);
};
/* The command line: parameters of the twist. */
extern uint64_t value;
extern unsigned int offset;
extern unsigned int size;
extern const char *address;
extern const char *port;
/*
 * With EVENTS in the environment the target reports asynchronous events. It completes the first
 * EVENTS requests at once with a namespace change, and leaves the next one pending.
 */
extern bool tells;
extern unsigned long events;
/* Delay of Identify and discovery log replies, in milliseconds: SLOW in the environment. */
extern unsigned long slow;
/* Granularity of the keep-alive timer (KAS), in units of 100 ms: GRANULARITY in the environment. */
extern unsigned long granularity;
/* Each command retry delay time (CRDT), in units of 100 ms: DELAY in the environment. */
extern unsigned long delay;
/* The host has enabled ACRE. Before that a status has no retry delay. */
extern bool keeps_delay;
/* Version of the specification (VS): VERSION in the environment. */
extern unsigned long version;
/*
 * Number of namespaces, all with the same blocks: NAMESPACES in the environment. The namespace with
 * the NSID OTHER, from the environment, has another UUID.
 */
extern unsigned long namespaces;
extern unsigned long other;
/* The namespaces have this EUI-64 instead of a UUID: EUI in the environment. */
extern uint64_t eui;
/*
 * Type of the protection information (DPS), which the target inserts and strips; 0 for none:
 * PROTECTION in the environment.
 */
extern unsigned long protection;
/*
 * Each association has another controller, and the namespaces are shared: SHARED in the environment.
 */
extern bool shared;

/* ANA Transition Time in seconds, if the controllers report asymmetric access: ANATT in the environment. */
extern unsigned int transition_time;
/* Entries of the discovery log: LOGGED in the environment. */
extern unsigned long logged;

/* hostile_target.c */

/* Transfers data between the queue's memory and the host's by RDMA; returns whether it succeeded. */
bool move(struct queue *queue, enum ibv_wr_opcode opcode, unsigned int length, uint64_t address,
	  uint32_t rkey);

/* Makes the target ignore the queues of a controller: no reply, no acknowledged disconnect. */
void activate_firmware(void);
void mute_queues(uint16_t controller);

/* Disconnects the I/O queues, and waits until the host has disconnected them, too. */
void part_io_queues(void);

/* hostile/answer.c */

/* Undoes the last write to the block TRAP, and keeps its data. */
void keep_write(void);

/* Executes the write that was kept. */
void land_write(void);

extern const char *const step_names[STEPS];

/* Returns the step of a command. */
enum step step_of(const struct queue *queue, const uint8_t *sqe);

/* Fills in the correct reply to a command. */
void answer(struct queue *queue, const struct capsule *capsule, enum step step,
	    struct reply *reply);

/* hostile/check.c */

/* Reports a protocol violation by the host and ends the target, which fails the test. */
void accuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Checks a command: flags, length, and that unused bytes are zero. */
void check_capsule(const struct queue *queue, const uint8_t *sqe, unsigned int length);

/* Checks that the command's data has this length. */
void check_length(const uint8_t *sqe, unsigned int length);

/* Checks that bytes `at` to `end` - 1 are zero. */
void check_zeroes(const char *what, const uint8_t *bytes, unsigned int at, unsigned int end);

/* hostile/twist.c */

/* Returns the twist with this name, or NULL. */
const struct twist *find_twist(const char *name);

/* Prints the names of all twists, each after a space. */
void print_twists(FILE *out);

/* Starts the random mode with a seed. */
void begin_random(uint64_t seed);

/* In the random mode: changes a reply by a random twist, or leaves it unchanged. */
void break_at_random(struct queue *queue, enum step step, struct reply *reply);

/* What happens to a connection request; in the random mode by the same sequence. */
enum fate { ACCEPTED, REJECTED, IGNORED };
enum fate fate_at_random(void);
#endif
