// SPDX-License-Identifier: GPL-2.0
/*
 * An NVMe/RDMA target that keeps to the protocol but for one thing.
 *
 * It has one controller with one namespace in memory, and a discovery log. At one STEP of what a host
 * asks of it, it does not answer as it should: a TWIST says what it does instead.
 * In the random mode it does so with some replies to whatever it is asked, each
 * time otherwise; the same SEED is the same sequence of choices.
 * Whatever it is asked is printed, one line each, so that a test can count it.
 *
 * It is ended by a signal: what it has of the kernel goes with the process.
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

#define CONTROLLER_ID	1
#define DISK_SIZE	(8 * 1024 * 1024)
/* Bytes of a block, as powers of two, in the formats that there are. */
#define FORMAT_0	9
#define FORMAT_1	12
/* A command for this block is a step of its own: nothing but a test asks for it. */
#define TRAP		8192

/* The size of an entry of the discovery log, and of its header. */
#define LOG_PART	1024

#define STATUS_DO_NOT_RETRY	0x4000
#define INVALID_OPCODE		0x0001
#define INVALID_FORMAT		0x010a
#define INVALID_FIELD		0x0002
#define OUT_OF_RANGE		0x0080

/* What a host asks for. */
enum step {
	REQUEST, CONNECT_ADMIN, CONNECT_IO, CAPABILITIES, STATUS, PROPERTY, CONFIGURE,
	CONTROLLER, LIST, NAMESPACE, DESCRIPTORS, LOG, ENTRIES, QUEUES, KEEP_ALIVE,
	EVENTS, EVENT, CHANGED, READ, WRITE, FLUSH,
	TRAP_READ, TRAP_WRITE, EFFECTS, FORMAT, OTHER,
};

static const char *const step_names[] = {
	[REQUEST] = "request", [CONNECT_ADMIN] = "connect", [CONNECT_IO] = "connect-io",
	[CAPABILITIES] = "capabilities", [STATUS] = "status", [PROPERTY] = "property",
	[CONFIGURE] = "configure", [CONTROLLER] = "controller", [LIST] = "list",
	[NAMESPACE] = "namespace", [DESCRIPTORS] = "descriptors", [LOG] = "log",
	[ENTRIES] = "entries", [QUEUES] = "queues",
	[KEEP_ALIVE] = "keep-alive", [EVENTS] = "events", [EVENT] = "event",
	[CHANGED] = "changed", [READ] = "read", [WRITE] = "write", [FLUSH] = "flush",
	[TRAP_READ] = "trap-read", [TRAP_WRITE] = "trap-write", [EFFECTS] = "effects",
	[FORMAT] = "format", [OTHER] = "other",
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
	struct rdma_cm_id *id;
	struct ibv_cq *receives;
	struct ibv_cq *sends;
	struct ibv_comp_channel *departures;
	struct ibv_mr *mr;
	struct memory *memory;
	unsigned int qid;
	bool over;
};

struct reply {
	const uint8_t *sqe;
	uint64_t result;
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
};

struct twist {
	const char *name;
	void (*apply)(struct queue *queue, struct reply *reply);
};

/* The command line. A request is rejected by no twist, for there is no command to reply to. */
static enum step twisted = OTHER;
static const struct twist *twist;
static uint64_t value;
static unsigned int offset;
static unsigned int size;
/* Of its step, so many are answered as they should before the rest is not: AFTER in the environment. */
static unsigned long spared;
/*
 * With EVENTS in the environment it tells of events: so many times at once that namespaces changed,
 * and then it keeps the request.
 */
static bool tells;
static unsigned long events;
/* Entries of the discovery log: LOGGED in the environment. */
static unsigned long logged = 6;

static const char *address;
static const char *port;

/* The state of the random mode; 0 without it. */
static uint64_t random_state;
/* One reply of so many is broken in it. */
#define RANDOM_ONE_IN	8

static struct ibv_comp_channel *arrivals;
static uint8_t disk[DISK_SIZE];
static unsigned int block_shift = FORMAT_0;
static uint32_t configuration;

static void put(uint8_t *at, uint64_t number, unsigned int bytes)
{
	uint64_t little = htole64(number);

	memcpy(at, &little, bytes);
}

static uint64_t get(const uint8_t *at, unsigned int bytes)
{
	uint64_t little = 0;

	memcpy(&little, at, bytes);
	return le64toh(little);
}

/* Verbs. */

/* Does one work request, and waits until it is done. Later ones fail once one has. */
static bool transfer(struct queue *queue, struct ibv_send_wr *request)
{
	struct ibv_send_wr *bad;
	struct ibv_wc completion;
	struct ibv_cq *cq;
	void *context;

	request->send_flags = IBV_SEND_SIGNALED;
	if (ibv_req_notify_cq(queue->sends, 0))
		err(1, "ibv_req_notify_cq");
	if (ibv_post_send(queue->id->qp, request, &bad))
		return false;
	if (ibv_get_cq_event(queue->departures, &cq, &context))
		err(1, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_poll_cq(cq, 1, &completion) != 1)
		errx(1, "queue %u: an event without a completion", queue->qid);
	if (completion.status != IBV_WC_SUCCESS)
		printf("%u failed: %s\n", queue->qid, ibv_wc_status_str(completion.status));
	return completion.status == IBV_WC_SUCCESS;
}

static struct ibv_sge piece(struct queue *queue, void *address, unsigned int length)
{
	return (struct ibv_sge) {
		.addr = (uintptr_t)address, .length = length, .lkey = queue->mr->lkey,
	};
}

/* Moves data between the queue's memory and the host's. */
static bool move(struct queue *queue, enum ibv_wr_opcode opcode, unsigned int length,
		 uint64_t address, uint32_t rkey)
{
	struct ibv_sge sge = piece(queue, queue->memory->data, length);
	struct ibv_send_wr request = {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = address, .rkey = rkey },
	};

	return transfer(queue, &request);
}

static bool respond(struct queue *queue, const struct reply *reply)
{
	struct ibv_sge sge = piece(queue, queue->memory->reply, reply->length);
	struct ibv_send_wr request = {
		.opcode = reply->invalidate ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND,
		.sg_list = &sge, .num_sge = 1, .invalidate_rkey = reply->invalidate,
	};
	uint8_t *cqe = queue->memory->reply;

	memset(cqe, 0, LONGEST_REPLY);
	put(cqe, reply->result, 8);
	put(cqe + 10, queue->qid, 2);
	put(cqe + 12, reply->cid, 2);
	put(cqe + 14, reply->status << 1, 2);
	return transfer(queue, &request);
}

static void post_receive(struct queue *queue, unsigned int number)
{
	struct capsule *capsule = &queue->memory->capsules[number];
	struct ibv_sge sge = piece(queue, capsule, sizeof(*capsule));
	struct ibv_recv_wr request = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(queue->id->qp, &request, &bad))
		err(1, "ibv_post_recv");
}

/* What a target answers. */

static void fail(struct reply *reply, uint16_t status)
{
	reply->status = status | STATUS_DO_NOT_RETRY;
	reply->data_length = 0;
}

/* Where the host wants the data, or has it. */
static void read_sgl(struct reply *reply)
{
	const uint8_t *sgl = reply->sqe + 24;

	reply->address = get(sgl, 8);
	if (sgl[15] >> 4 != 4)
		return;
	reply->rkey = get(sgl + 11, 4);
	if ((sgl[15] & 0xf) == 0xf)
		reply->invalidate = reply->rkey;
}

static void connect_queue(struct reply *reply)
{
	reply->result = CONTROLLER_ID;
}

static void get_property(struct reply *reply)
{
	switch (get(reply->sqe + 44, 4)) {
	case 0x00:
		/* Contiguous queues, half a second to become ready, NVM command set. */
		reply->result = (MAX_ENTRIES - 1) | 1 << 16 | 1 << 24 | 1ULL << 37;
		break;
	case 0x08:
		reply->result = 0x00010300;
		break;
	case 0x14:
		reply->result = configuration;
		break;
	case 0x1c:
		/* At once what the configuration says: ready, and shut down. */
		reply->result = (configuration & 1) | (configuration & 3 << 14 ? 2 << 2 : 0);
		break;
	default:
		fail(reply, INVALID_FIELD);
	}
}

static void set_property(struct reply *reply)
{
	if (get(reply->sqe + 44, 4) == 0x14)
		configuration = get(reply->sqe + 48, 4);
	else
		fail(reply, INVALID_FIELD);
}

/* With another SERIAL in the environment, of a character, the target is another one. */
static void identify_controller(uint8_t *data)
{
	const char *serial = getenv("SERIAL");

	memcpy(data + 4, "serial              ", 20);
	if (serial)
		data[4] = *serial;
	memcpy(data + 24, "hostile                                 ", 40);
	data[77] = 5;
	put(data + 78, CONTROLLER_ID, 2);
	put(data + 80, 0x00010300, 4);
	/* Changes of namespaces, and of the discovery log. */
	put(data + 92, tells ? 1 << 8 | 1U << 31 : 0, 4);
	/* There is a log of effects. */
	data[261] = 1 << 1;
	put(data + 320, 10, 2);
	data[512] = 0x66;
	data[513] = 0x44;
	put(data + 514, MAX_ENTRIES, 2);
	put(data + 516, 1, 4);
	/* SGLs, keyed ones, with offsets. */
	put(data + 536, 1 | 1 << 2 | 1 << 20, 4);
	put(data + 1792, (SQE_SIZE + INLINE_SIZE) / 16, 4);
	put(data + 1796, CQE_SIZE / 16, 4);
}

static void identify_namespace(uint8_t *data)
{
	uint64_t blocks = DISK_SIZE >> block_shift;

	put(data, blocks, 8);
	put(data + 8, blocks, 8);
	put(data + 16, blocks, 8);
	/* Two formats, less one. */
	data[25] = 1;
	data[26] = block_shift == FORMAT_1;
	data[130] = FORMAT_0;
	data[134] = FORMAT_1;
}

static void identify_descriptors(uint8_t *data)
{
	data[0] = 3;
	data[1] = 16;
	memset(data + 4, 0x5e, 16);
}

static void identify(struct queue *queue, struct reply *reply)
{
	uint8_t *data = queue->memory->data;
	uint32_t nsid = get(reply->sqe + 4, 4);

	/* Of namespaces that are not there it says nothing but zeroes. */
	memset(data, 0, IDENTIFY_SIZE);
	reply->data_length = IDENTIFY_SIZE;
	switch (reply->sqe[40]) {
	case 0x00:
		if (nsid == 1)
			identify_namespace(data);
		break;
	case 0x01:
		identify_controller(data);
		break;
	case 0x02:
		if (!nsid)
			put(data, 1, 4);
		break;
	case 0x03:
		if (nsid == 1)
			identify_descriptors(data);
		break;
	default:
		fail(reply, INVALID_FIELD);
	}
}

static void discovery_header(uint8_t *data)
{
	put(data, 1, 8);
	put(data + 8, logged, 8);
}

/* The ways to the one subsystem that there is, each with a number in its name. */
static void discovery_entry(uint8_t *data, unsigned int number)
{
	data[0] = 1;
	data[1] = strchr(address, ':') ? 2 : 1;
	data[2] = 2;
	put(data + 4, 1, 2);
	put(data + 6, 0xffff, 2);
	put(data + 8, 32, 2);
	snprintf((char *)data + 32, 32, "%s", port);
	snprintf((char *)data + 256, 224, "nqn.2014-08.org.example:hostile%u", number);
	snprintf((char *)data + 512, 256, "%s", address);
	data[768] = 1;
	data[769] = 4;
	data[770] = 1;
}

static void discovery_log(struct queue *queue, struct reply *reply)
{
	uint64_t start = get(reply->sqe + 48, 8);
	uint64_t length = 4 * (get(reply->sqe + 42, 4) + 1);
	uint8_t *data = queue->memory->data;
	unsigned int at;

	if (length > MAX_TRANSFER || start % LOG_PART || length % LOG_PART)
		return fail(reply, INVALID_FIELD);
	memset(data, 0, length);
	for (at = 0; at < length; at += LOG_PART) {
		if (start + at)
			discovery_entry(data + at, (start + at) / LOG_PART - 1);
		else
			discovery_header(data + at);
	}
	reply->data_length = length;
}

static void tell_event(struct reply *reply)
{
	if (!tells)
		return fail(reply, INVALID_OPCODE);
	/* A notice, of log page 4. */
	reply->result = 0x00040002;
	reply->silent = !events;
	if (events)
		events--;
}

static void changed_log(struct queue *queue, struct reply *reply)
{
	memset(queue->memory->data, 0, IDENTIFY_SIZE);
	put(queue->memory->data, 1, 4);
	reply->data_length = IDENTIFY_SIZE;
}

/* Of vendors' commands one changes which namespaces there are, and one wants to be alone. */
static void effects_log(struct queue *queue, struct reply *reply)
{
	uint8_t *data = queue->memory->data;

	memset(data, 0, IDENTIFY_SIZE);
	put(data + 4 * 0xc0, 1 | 1 << 3, 4);
	put(data + 4 * 0xc1, 1 | 1 << 16, 4);
	reply->data_length = IDENTIFY_SIZE;
}

static void format(struct reply *reply)
{
	static const unsigned int shifts[] = { FORMAT_0, FORMAT_1 };
	unsigned int number = reply->sqe[40] & 0xf;

	if (number >= ARRAY_SIZE(shifts))
		return fail(reply, INVALID_FORMAT);
	block_shift = shifts[number];
	memset(disk, 0, sizeof(disk));
}

static void read_write(struct queue *queue, const struct capsule *capsule, struct reply *reply)
{
	uint64_t start = get(reply->sqe + 40, 8);
	uint64_t length = (get(reply->sqe + 48, 2) + 1) << block_shift;
	uint64_t blocks = DISK_SIZE >> block_shift;
	uint8_t *data = queue->memory->data;

	if (length > MAX_TRANSFER || start > blocks || length >> block_shift > blocks - start)
		return fail(reply, OUT_OF_RANGE);
	start <<= block_shift;
	if (reply->sqe[0] == 0x02) {
		memcpy(data, disk + start, length);
		reply->data_length = length;
	} else if (!reply->rkey) {
		if (length > INLINE_SIZE)
			return fail(reply, INVALID_FIELD);
		memcpy(disk + start, capsule->data, length);
	} else if (move(queue, IBV_WR_RDMA_READ, length, reply->address, reply->rkey)) {
		memcpy(disk + start, data, length);
	} else {
		reply->silent = true;
	}
}

static void answer(struct queue *queue, const struct capsule *capsule, enum step step,
		   struct reply *reply)
{
	read_sgl(reply);
	switch (step) {
	case CONNECT_ADMIN: case CONNECT_IO:
		return connect_queue(reply);
	case CAPABILITIES: case STATUS: case PROPERTY:
		return get_property(reply);
	case CONFIGURE:
		return set_property(reply);
	case CONTROLLER: case LIST: case NAMESPACE: case DESCRIPTORS:
		return identify(queue, reply);
	case LOG: case ENTRIES:
		return discovery_log(queue, reply);
	case READ: case WRITE: case TRAP_READ: case TRAP_WRITE:
		return read_write(queue, capsule, reply);
	case QUEUES:
		/* As many as there are wanted. */
		reply->result = get(reply->sqe + 44, 4);
		return;
	case EVENT:
		return tell_event(reply);
	case CHANGED:
		return changed_log(queue, reply);
	case EFFECTS:
		return effects_log(queue, reply);
	case FORMAT:
		return format(reply);
	case KEEP_ALIVE: case EVENTS: case FLUSH:
		return;
	default:
		return fail(reply, INVALID_OPCODE);
	}
}

/* Which step a command is. */

static enum step fabrics_step(const struct queue *queue, const uint8_t *sqe)
{
	switch (sqe[4]) {
	case 0x00:
		return CONFIGURE;
	case 0x01:
		return queue->qid ? CONNECT_IO : CONNECT_ADMIN;
	case 0x04:
		switch (get(sqe + 44, 4)) {
		case 0x00:
			return CAPABILITIES;
		case 0x1c:
			return STATUS;
		}
		return PROPERTY;
	}
	return OTHER;
}

static enum step admin_step(const uint8_t *sqe)
{
	static const enum step identified[] = { NAMESPACE, CONTROLLER, LIST, DESCRIPTORS };

	switch (sqe[0]) {
	case 0x02:
		if (sqe[40] == 0x04)
			return CHANGED;
		if (sqe[40] == 0x05)
			return EFFECTS;
		if (sqe[40] != 0x70)
			return OTHER;
		return get(sqe + 48, 8) ? ENTRIES : LOG;
	case 0x06:
		return sqe[40] < ARRAY_SIZE(identified) ? identified[sqe[40]] : OTHER;
	case 0x09:
		if (sqe[40] == 0x0b)
			return EVENTS;
		return sqe[40] == 0x07 ? QUEUES : OTHER;
	case 0x0c:
		return EVENT;
	case 0x18:
		return KEEP_ALIVE;
	case 0x80:
		return FORMAT;
	}
	return OTHER;
}

static enum step io_step(const uint8_t *sqe)
{
	bool trap = get(sqe + 40, 8) == TRAP;

	switch (sqe[0]) {
	case 0x00:
		return FLUSH;
	case 0x01:
		return trap ? TRAP_WRITE : WRITE;
	case 0x02:
		return trap ? TRAP_READ : READ;
	}
	return OTHER;
}

static enum step step_of(const struct queue *queue, const uint8_t *sqe)
{
	if (sqe[0] == 0x7f)
		return fabrics_step(queue, sqe);
	return queue->qid ? io_step(sqe) : admin_step(sqe);
}

/* What it does instead. */

static void twist_silent(struct queue *queue, struct reply *reply)
{
	reply->silent = true;
}

static void twist_hang_up(struct queue *queue, struct reply *reply)
{
	reply->hang_up = true;
}

/* An error of this status; with the result that OFFSET is. */
static void twist_status(struct queue *queue, struct reply *reply)
{
	reply->status = value;
	reply->result = offset;
	reply->data_length = 0;
	reply->silent = false;
}

static void twist_result(struct queue *queue, struct reply *reply)
{
	reply->result = value;
	reply->silent = false;
}

static void twist_poke(struct queue *queue, struct reply *reply)
{
	put(queue->memory->data + offset, value, size);
}

/* One byte over and over, as much as a text has room for. */
static void twist_flood(struct queue *queue, struct reply *reply)
{
	memset(queue->memory->data + offset, value, 256);
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

/* Writes the data to where it does not belong: so many bytes from where it does. */
static void twist_move(struct queue *queue, struct reply *reply)
{
	reply->address += value;
}

static const struct twist twists[] = {
	{ "silent", twist_silent }, { "hang-up", twist_hang_up }, { "status", twist_status },
	{ "result", twist_result }, { "poke", twist_poke }, { "fill", twist_fill },
	{ "length", twist_length }, { "twice", twist_twice }, { "cid", twist_cid },
	{ "keep", twist_keep }, { "key", twist_key }, { "swap", twist_swap },
	{ "late", twist_late }, { "move", twist_move }, { "flood", twist_flood },
	{ "drift", twist_drift }, { "short", twist_short },
};

/* The random mode. */

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

/* Breaks a reply in a way of its own, or leaves it as it is. */
static void break_at_random(struct queue *queue, enum step step, struct reply *reply)
{
	/* Silence is not among them: each takes as long as a time limit. Most are lies. */
	static const char *const names[] = {
		"poke", "poke", "poke", "poke", "result", "status", "fill", "length", "twice",
		"cid", "keep", "key", "late", "move", "hang-up",
	};
	const char *name = names[random_number() % ARRAY_SIZE(names)];
	const struct twist *each = twists;

	if (random_number() % RANDOM_ONE_IN)
		return;
	while (strcmp(each->name, name))
		each++;
	value = random_value();
	size = 1 + random_number() % 8;
	offset = random_number() % (IDENTIFY_SIZE - 8);
	if (each->apply == twist_length)
		value %= LONGEST_REPLY + 1;
	printf("- broken %s %s %#llx %u %u\n", step_names[step], name, (unsigned long long)value,
	       offset, size);
	each->apply(queue, reply);
}

/* The queues. */

/* A command can come before the connection is known to be established: then nobody is told. */
static void hang_up(struct queue *queue)
{
	queue->over = true;
	rdma_disconnect(queue->id);
}

static void deliver(struct queue *queue, struct reply *reply)
{
	bool early = reply->data_length && !reply->data_last;
	unsigned int copy;

	if (reply->hang_up)
		hang_up(queue);
	if (reply->hang_up || reply->silent)
		return;
	if (early && !move(queue, IBV_WR_RDMA_WRITE, reply->data_length, reply->address, reply->rkey))
		return;
	for (copy = 0; copy < reply->copies; copy++) {
		if (!respond(queue, reply))
			return;
		/* A key can be invalidated once. */
		reply->invalidate = 0;
	}
	if (reply->data_last)
		move(queue, IBV_WR_RDMA_WRITE, reply->data_length, reply->address, reply->rkey);
}

static void serve(struct queue *queue, const struct capsule *capsule)
{
	struct reply reply = {
		.sqe = capsule->sqe, .cid = get(capsule->sqe + 2, 2),
		.length = CQE_SIZE, .copies = 1,
	};
	enum step step = step_of(queue, capsule->sqe);

	printf("%u %s\n", queue->qid, step_names[step]);
	/* The data of a Connect is not looked at: whoever comes is welcome. */
	answer(queue, capsule, step, &reply);
	if (twist && step == twisted && !spared)
		twist->apply(queue, &reply);
	else if (step == twisted && spared)
		spared--;
	if (random_state)
		break_at_random(queue, step, &reply);
	deliver(queue, &reply);
}

static void take_arrivals(void)
{
	struct ibv_wc completion;
	struct queue *queue;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(arrivals, &cq, &context))
		err(1, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		err(1, "ibv_req_notify_cq");
	queue = context;
	while (ibv_poll_cq(cq, 1, &completion) > 0) {
		/* Flushed, or a capsule that is too long: the connection is over. */
		if (completion.status != IBV_WC_SUCCESS)
			continue;
		serve(queue, &queue->memory->capsules[completion.wr_id]);
		post_receive(queue, completion.wr_id);
	}
}

/* False if the host has given up the connection meanwhile. */
static bool make_queue(struct rdma_cm_id *id, unsigned int qid)
{
	struct queue *queue = calloc(1, sizeof(*queue));
	struct ibv_qp_init_attr attributes = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = RECEIVES,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	unsigned int number;

	if (!queue || !(queue->memory = calloc(1, sizeof(*queue->memory))))
		err(1, "out of memory");
	if (!arrivals && !(arrivals = ibv_create_comp_channel(id->verbs)))
		err(1, "ibv_create_comp_channel");
	id->context = queue;
	queue->id = id;
	queue->qid = qid;
	queue->receives = ibv_create_cq(id->verbs, RECEIVES, queue, arrivals, 0);
	queue->departures = ibv_create_comp_channel(id->verbs);
	if (!queue->departures)
		err(1, "ibv_create_comp_channel");
	queue->sends = ibv_create_cq(id->verbs, 4, NULL, queue->departures, 0);
	if (!queue->receives || !queue->sends || ibv_req_notify_cq(queue->receives, 0))
		err(1, "ibv_create_cq");
	attributes.recv_cq = queue->receives;
	attributes.send_cq = queue->sends;
	if (rdma_create_qp(id, NULL, &attributes)) {
		warn("rdma_create_qp");
		return false;
	}
	queue->mr = ibv_reg_mr(id->pd, queue->memory, sizeof(*queue->memory),
			       IBV_ACCESS_LOCAL_WRITE);
	if (!queue->mr)
		err(1, "ibv_reg_mr");
	for (number = 0; number < RECEIVES; number++)
		post_receive(queue, number);
	return true;
}

/* Rejects a connection for the reason that VALUE is, in as many bytes as OFFSET says. */
static void reject(struct rdma_cm_id *id)
{
	uint8_t data[4] = {};

	put(data + 2, value, 2);
	if (rdma_reject(id, data, offset))
		err(1, "rdma_reject");
	rdma_destroy_id(id);
}

static void accept_queue(struct rdma_cm_id *id, const struct rdma_conn_param *request)
{
	uint8_t data[32] = {};
	struct rdma_conn_param parameters = {
		.private_data = data, .private_data_len = sizeof(data),
		.initiator_depth = 1, .rnr_retry_count = 7,
	};
	unsigned int qid;

	if (request->private_data_len < sizeof(data))
		errx(1, "the host sent %u bytes of private data", request->private_data_len);
	qid = get((const uint8_t *)request->private_data + 2, 2);
	put(data + 2, MAX_ENTRIES, 2);
	if (make_queue(id, qid) && rdma_accept(id, &parameters))
		warn("rdma_accept");
}

static void take_request(struct rdma_cm_id *id, const struct rdma_conn_param *request)
{
	printf("- request\n");
	if (twisted != REQUEST)
		accept_queue(id, request);
	else if (!twist)
		reject(id);
	/* Else the host waits for an answer. */
}

static void take_event(struct rdma_event_channel *channel)
{
	const struct queue *queue;
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		err(1, "rdma_get_cm_event");
	queue = event->id->context;
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		take_request(event->id, &event->param.conn);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (queue->over)
			rdma_disconnect(event->id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(event->id);
		break;
	default:
		break;
	}
	rdma_ack_cm_event(event);
}

static struct rdma_event_channel *listen_at_address(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_addrinfo *found;
	struct rdma_cm_id *id;

	if (!channel)
		err(1, "rdma_create_event_channel");
	if (rdma_getaddrinfo(address, port, &hints, &found))
		err(1, "rdma_getaddrinfo");
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		err(1, "rdma_create_id");
	if (rdma_bind_addr(id, found->ai_src_addr) || rdma_listen(id, 8))
		err(1, "%s port %s", address, port);
	rdma_freeaddrinfo(found);
	return channel;
}

static void usage(void)
{
	unsigned int n;

	fprintf(stderr, "usage: hostile_target ADDRESS PORT [STEP TWIST [VALUE [OFFSET SIZE]]]\n"
		"       hostile_target ADDRESS PORT random SEED\nsteps:");
	for (n = 0; n < ARRAY_SIZE(step_names); n++)
		fprintf(stderr, " %s", step_names[n]);
	fprintf(stderr, "\ntwists: reject (of request)");
	for (n = 0; n < ARRAY_SIZE(twists); n++)
		fprintf(stderr, " %s", twists[n].name);
	fprintf(stderr, "\n");
	exit(2);
}

static void choose(const char *step, const char *name)
{
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(step_names) && strcmp(step, step_names[n]); n++)
		;
	if (n == ARRAY_SIZE(step_names))
		usage();
	twisted = n;
	if (twisted == REQUEST && !strcmp(name, "reject"))
		return;
	for (n = 0; n < ARRAY_SIZE(twists) && strcmp(name, twists[n].name); n++)
		;
	if (n == ARRAY_SIZE(twists) || (twisted == REQUEST && strcmp(name, "silent")))
		usage();
	twist = &twists[n];
}

static unsigned long long number(const char *text)
{
	char *end;
	unsigned long long result;

	errno = 0;
	result = strtoull(text, &end, 0);
	if (errno || end == text || *end)
		usage();
	return result;
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel;

	if (argc < 3 || argc == 4 || argc > 8)
		usage();
	if (argc == 5 && !strcmp(argv[3], "random"))
		/* Seeds that differ little shall not. */
		random_state = (number(argv[4]) + 1) * 0x9e3779b97f4a7c15;
	else if (argc > 4)
		choose(argv[3], argv[4]);
	if (argc > 5)
		value = number(argv[5]);
	if (argc > 6)
		offset = number(argv[6]);
	if (argc > 7)
		size = number(argv[7]);
	if (size > 8 || offset > 0x1ffff)
		usage();
	tells = getenv("EVENTS");
	events = tells ? number(getenv("EVENTS")) : 0;
	spared = getenv("AFTER") ? number(getenv("AFTER")) : 0;
	logged = getenv("LOGGED") ? number(getenv("LOGGED")) : logged;
	setvbuf(stdout, NULL, _IOLBF, 0);
	address = argv[1];
	port = argv[2];
	channel = listen_at_address();
	printf("- ready\n");
	for (;;) {
		struct pollfd sources[] = {
			{ .fd = channel->fd, .events = POLLIN },
			{ .fd = arrivals ? arrivals->fd : -1, .events = POLLIN },
		};

		if (poll(sources, ARRAY_SIZE(sources), -1) < 0)
			err(1, "poll");
		if (sources[0].revents)
			take_event(channel);
		if (sources[1].revents)
			take_arrivals();
	}
}
