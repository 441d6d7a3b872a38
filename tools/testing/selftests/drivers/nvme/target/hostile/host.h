/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces between the parts of hostile_host.
 */
#ifndef HOSTILE_HOST_H
#define HOSTILE_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "../../../block/rnvmf/hostile/bytes.h"

/* Commands that a queue may have in flight. */
#define WINDOW		256
/* Bytes after the SQE in the longest capsule: more than the largest inline_data_size of nvmet. */
#define CAPSULE_DATA	32768
/* Memory that commands name by key: more than MDTS allows. */
#define DATA_SIZE	(4 << 20)
/* Private data of a connection request: the limit of InfiniBand. */
#define PRIVATE_DATA	56

extern const char *address;
extern const char *port;
/* Source address of new connections; NULL for any. */
extern const char *source_address;
/* Time limit of a step, in milliseconds. */
extern unsigned int patience;
/* Keep-alive time of new controllers, in milliseconds; 0 is none. */
extern unsigned int keep_alive;

/* A connection request. */
struct request {
	uint8_t data[PRIVATE_DATA];
	/* Bytes of private data. */
	unsigned int length;
	/* RDMA reads and atomics that the host responds to at a time. */
	unsigned int responder_resources;
	/* Do not send RTU. */
	bool no_rtu;
	/* Receives that are posted. If fewer than WINDOW, they are not posted again. */
	unsigned int receives;
	/* Send to this queue pair of the target instead of its own; 0 for its own. */
	uint32_t dest;
	/* Retries of a packet by either side, at most 7. */
	unsigned int retry_count;
	/* Acknowledgement time-out of either side as a power of two; 0 for that of the route. */
	uint8_t ack_timeout;
};

/* How a connection request ended. */
enum fate { ACCEPTED, REJECTED, FAILED };

struct verdict {
	enum fate fate;
	/* If accepted: CRQSIZE. */
	unsigned int crqsize;
	/* If rejected: the reason of the connection manager, and the target's private data. */
	unsigned int reason;
	unsigned int recfmt;
	unsigned int status;
	/* If failed: the event of the connection manager. */
	const char *event;
};

struct response {
	uint64_t result;
	uint16_t cid;
	/* Status field without the phase tag, DNR, M and CRD: SCT and SC. */
	uint16_t status;
};

/* What a wait for a response ended with. */
enum event {
	RESPONSE,
	/* The target has disconnected. */
	GONE,
	/* A work request failed, and the target has not disconnected. */
	BROKEN,
	SILENCE,
};

struct queue;

/* What is sent as a command. */
struct capsule {
	uint8_t sqe[SQE_SIZE];
	/* Bytes after the SQE. */
	uint8_t *data;
	/* Bytes to send, which may be fewer than an SQE has. */
	unsigned int length;
};

/* hostile/queue.c */

/* Opens a connection. Returns NULL unless it was accepted. */
struct queue *queue_open(const struct request *request, struct verdict *verdict);

/* Disconnects, and frees the queue. */
void queue_close(struct queue *queue);

/* Moves the queue pair to the error state, so that it drops all packets. */
void queue_break(struct queue *queue);

/* The memory that commands name by key, shared by all queues, and its key. */
uint8_t *queue_data(void);
uint32_t queue_key(void);

/* Sends a capsule. Returns false if the queue pair refuses it. */
bool queue_send(struct queue *queue, const struct capsule *capsule);

/* Lets the next capsule be sent right behind this one, which has no data. */
void queue_hold(struct queue *queue, const struct capsule *capsule);

/* Waits for a response. */
enum event queue_wait(struct queue *queue, unsigned int milliseconds, struct response *response);

/* hostile/command.c */

struct command {
	const char *name;
	struct capsule capsule;
	/* Times that it is sent, each with the next command identifier unless `same_cid`. */
	unsigned int count;
	bool same_cid;
	bool nowait;
	/* Send it together with the next one. */
	bool hold;
	/* Print the result. */
	bool show;
};

/* Fills in a correct command of this name; returns false if there is none. */
bool command_make(const char *name, struct command *command);

/* Changes a field of the command. Returns false if there is no such field. */
bool command_set(struct command *command, const char *field, const char *value);

/* Prints all names of commands, and of their fields. */
void command_usage(FILE *out);

/* The controller of Connect on I/O queues, and the subsystem. */
extern uint16_t controller;
extern const char *subsystem;

/* hostile/session.c */

/* Fills in a correct connection request. */
void request_make(struct request *request, unsigned int qid);

/* Sends a correct command, with a queue identifier unless 0. Returns whether it succeeded. */
bool session_sends(struct queue *queue, const char *name, unsigned int qid);

/* Open a queue and send Connect; the admin queue also enables its controller. NULL on failure. */
struct queue *session_admin(void);
struct queue *session_io(unsigned int qid);

/* hostile/flood.c */

struct flood {
	struct request request;
	unsigned int count;
	/* The first source address, in numbers and dots; NULL for any. */
	const char *source;
	/* Number of source addresses, which follow each other. */
	unsigned int sources;
};

/* Sends many requests, prints their outcomes, and leaves the accepted ones as they are. */
void flood_run(const struct flood *flood);

/* hostile/random.c */

/* Sends COUNT broken requests, and prints their outcomes. */
void random_run(uint64_t seed, unsigned long count);
#endif
