// SPDX-License-Identifier: GPL-2.0
/*
 * Classifies commands and fills in correct replies.
 */
#include <stdlib.h>
#include <unistd.h>

#include "target.h"

#define CONTROLLER_ID	1
#define DISK_SIZE	(8 * 1024 * 1024)
/* Block sizes of the LBA formats, as powers of two. */
#define FORMAT_0	9
#define FORMAT_1	12
/* A command for this block is a step of its own, so that only the test's I/O matches. */
#define TRAP		8192

/* Size of the discovery log's header and of each entry. */
#define LOG_PART	1024

/* Size of the Host Behavior Support data. */
#define BEHAVIOR_SIZE	512

/* Size of the Connect data, and the offsets of its fields. */
#define CONNECT_SIZE	1024
#define CONNECT_CONTROLLER	16
#define CONNECT_SUBSYSTEM	256
#define CONNECT_HOST	512
#define CONNECT_END	768

/* Sizes of the range list of a Dataset Management command and of one range. */
#define RANGES_SIZE	4096
#define RANGE_SIZE	16

#define STATUS_DO_NOT_RETRY	0x4000
#define INVALID_OPCODE		0x0001
#define INVALID_FORMAT		0x010a
#define INVALID_FIELD		0x0002
#define OUT_OF_RANGE		0x0080

const char *const step_names[STEPS] = {
	[REQUEST] = "request", [CONNECT_ADMIN] = "connect", [CONNECT_IO] = "connect-io",
	[CAPABILITIES] = "capabilities", [STATUS] = "status", [PROPERTY] = "property",
	[CONFIGURE] = "configure", [CONTROLLER] = "controller", [LIST] = "list",
	[NAMESPACE] = "namespace", [DESCRIPTORS] = "descriptors",
	[INDEPENDENT] = "independent", [LOG] = "log",
	[ENTRIES] = "entries", [QUEUES] = "queues",
	[KEEP_ALIVE] = "keep-alive", [EVENTS] = "events", [EVENT] = "event",
	[CHANGED] = "changed", [READ] = "read", [WRITE] = "write", [FLUSH] = "flush",
	[DISCARD] = "discard", [ZEROES] = "zeroes",
	[TRAP_READ] = "trap-read", [TRAP_WRITE] = "trap-write", [EFFECTS] = "effects",
	[FORMAT] = "format", [BEHAVIOR] = "behavior", [OTHER] = "other",
};
static uint8_t disk[DISK_SIZE];
static unsigned int block_shift = FORMAT_0;
static uint32_t configuration;

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
	static const enum step identified[] = {
		NAMESPACE, CONTROLLER, LIST, DESCRIPTORS, OTHER, OTHER, OTHER, OTHER, INDEPENDENT,
	};

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
		if (sqe[40] == 0x16)
			return BEHAVIOR;
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
	case 0x08:
		return ZEROES;
	case 0x09:
		return DISCARD;
	}
	return OTHER;
}

enum step step_of(const struct queue *queue, const uint8_t *sqe)
{
	if (sqe[0] == 0x7f)
		return fabrics_step(queue, sqe);
	return queue->qid ? io_step(sqe) : admin_step(sqe);
}
static void fail(struct reply *reply, uint16_t status)
{
	reply->status = status | STATUS_DO_NOT_RETRY;
	reply->data_length = 0;
}

/* Reads the SGL descriptor: address and key of the data. */
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

/* Copies the data of a command from its capsule, or reads it from the host by RDMA. */
static bool fetch(struct queue *queue, const struct capsule *capsule, struct reply *reply,
		  unsigned int length)
{
	check_length(reply->sqe, length);
	if (reply->rkey)
		reply->silent = !move(queue, IBV_WR_RDMA_READ, length, reply->address, reply->rkey);
	else
		memcpy(queue->memory->data, capsule->data, length);
	return !reply->silent;
}

/* Checks that an NQN is terminated and padded with zeroes. */
static void check_name(const uint8_t *data, unsigned int at, unsigned int end)
{
	unsigned int length = strnlen((const char *)data + at, end - at);

	if (at + length == end)
		accuse("NQN in the Connect data is not terminated");
	check_zeroes("the data of a Connect", data, at + length, end);
}

/* Accepts any host whose Connect data is well-formed. */
static void connect_queue(struct queue *queue, const struct capsule *capsule,
			  struct reply *reply)
{
	static uint16_t controllers;
	const uint8_t *data = queue->memory->data;

	if (!fetch(queue, capsule, reply, CONNECT_SIZE))
		return;
	if (queue->qid)
		queue->controller = get(data + CONNECT_CONTROLLER, 2);
	else
		queue->controller = shared ? ++controllers : CONTROLLER_ID;
	reply->result = queue->controller;
	check_zeroes("the data of a Connect", data, 18, CONNECT_SUBSYSTEM);
	check_name(data, CONNECT_SUBSYSTEM, CONNECT_HOST);
	check_name(data, CONNECT_HOST, CONNECT_END);
	if (!queue->qid)
		printf("- subsystem %s\n", data + CONNECT_SUBSYSTEM);
	check_zeroes("the data of a Connect", data, CONNECT_END, CONNECT_SIZE);
}

static void get_property(struct reply *reply)
{
	switch (get(reply->sqe + 44, 4)) {
	case 0x00:
		/* CAP: MQES, CQR, a TO of 500 ms, NSSRS, NVM command set. */
		reply->result = (MAX_ENTRIES - 1) | 1 << 16 | 1 << 24 | 3ULL << 36;
		break;
	case 0x08:
		reply->result = version;
		break;
	case 0x14:
		reply->result = configuration;
		break;
	case 0x1c:
		/* CSTS follows CC at once: ready, and shutdown complete. */
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

/* SERIAL in the environment replaces the first character of the serial number. */
static void identify_controller(const struct queue *queue, uint8_t *data)
{
	const char *serial = getenv("SERIAL");
	unsigned int at;

	memcpy(data + 4, "serial              ", 20);
	if (serial)
		data[4] = *serial;
	memcpy(data + 24, "hostile                                 ", 40);
	data[77] = 5;
	/* CMIC: the subsystem may have several controllers. */
	data[76] = shared ? 1 << 1 : 0;
	/* CMIC, ANATT, ANACAP: the access is asymmetric. */
	data[76] |= transition_time ? 1 << 3 : 0;
	data[342] = transition_time;
	data[343] = transition_time ? 0x1f : 0;
	put(data + 78, queue->controller, 2);
	put(data + 80, version, 4);
	/* OAES: namespace attribute and discovery log change notices. */
	put(data + 92, tells ? 1 << 8 | 1U << 31 : 0, 4);
	for (at = 128; at < 134; at += 2)
		put(data + at, delay, 2);
	/* LPA: Commands Supported and Effects log. */
	data[261] = 1 << 1;
	put(data + 320, granularity, 2);
	data[512] = 0x66;
	data[513] = 0x44;
	put(data + 514, MAX_ENTRIES, 2);
	put(data + 516, 1, 4);
	/* SGLS: supported, keyed, with offsets in the capsule. */
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
	/* NLBAF is zero-based: two formats. */
	data[25] = 1;
	data[26] = block_shift == FORMAT_1;
	data[130] = FORMAT_0;
	data[134] = FORMAT_1;
	/* DLFEAT: deallocated blocks read as zeroes. Holds with Write Zeroes only. */
	data[33] = 1 << 3 | 1;
	/* NAWUPF and NABSPF, zero-based. They hold with NSFEAT.NSABP only, which a twist may set. */
	put(data + 36, 7, 2);
	put(data + 44, 15, 2);
	put(data + 120, htobe64(eui), 8);
	/* DPS, and the metadata of both formats. */
	data[29] = protection;
	/* NMIC: several controllers may access the namespace. */
	data[30] = shared;
	put(data + 128, protection ? 8 : 0, 2);
	put(data + 132, protection ? 8 : 0, 2);
}

static void identify_descriptors(uint8_t *data, uint32_t nsid)
{
	if (eui) {
		data[0] = 1;
		data[1] = 8;
		put(data + 4, htobe64(eui), 8);
		return;
	}
	data[0] = 3;
	data[1] = 16;
	memset(data + 4, 0x5e, 16);
	data[18] += nsid == other;
	data[19] += nsid - 1;
}

static void list_namespaces(uint8_t *data, uint32_t after)
{
	while (after < namespaces) {
		put(data, ++after, 4);
		data += 4;
	}
}

static void identify(struct queue *queue, struct reply *reply)
{
	uint8_t *data = queue->memory->data;
	uint32_t nsid = get(reply->sqe + 4, 4);

	check_length(reply->sqe, IDENTIFY_SIZE);
	/* The data of an inactive namespace is zero. */
	memset(data, 0, IDENTIFY_SIZE);
	reply->data_length = IDENTIFY_SIZE;
	switch (reply->sqe[40]) {
	case 0x00:
		if (nsid && nsid <= namespaces)
			identify_namespace(data);
		break;
	case 0x01:
		identify_controller(queue, data);
		break;
	case 0x02:
		list_namespaces(data, nsid);
		break;
	case 0x03:
		if (nsid && nsid <= namespaces)
			identify_descriptors(data, nsid);
		break;
	case 0x08:
		/* NSTAT.NRDY */
		data[14] = nsid && nsid <= namespaces;
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

/* Each entry has the address of this target, and an NQN with a number. */
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
	check_length(reply->sqe, length);
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
	/* Notice: Namespace Attribute Changed, log page 4. */
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

/* Vendor commands: 0xc0 changes the namespace inventory (NIC), 0xc1 must run alone (CSE). */
static void effects_log(struct queue *queue, struct reply *reply)
{
	uint8_t *data = queue->memory->data;

	memset(data, 0, IDENTIFY_SIZE);
	put(data + 4 * 0xc0, 1 | 1 << 3, 4);
	put(data + 4 * 0xc1, 1 | 1 << 16, 4);
	reply->data_length = IDENTIFY_SIZE;
}

static void take_behavior(struct queue *queue, const struct capsule *capsule,
			  struct reply *reply)
{
	const uint8_t *data = queue->memory->data;

	if (!fetch(queue, capsule, reply, BEHAVIOR_SIZE))
		return;
	check_zeroes("the behavior", data, 1, BEHAVIOR_SIZE);
	keeps_delay = data[0] == 1;
}

/* Dataset Management: checks that unused ranges are zero. */
static void discard(struct queue *queue, const struct capsule *capsule, struct reply *reply)
{
	unsigned int end = (reply->sqe[40] + 1) * RANGE_SIZE;
	const uint8_t *data = queue->memory->data;

	if (fetch(queue, capsule, reply, RANGES_SIZE))
		check_zeroes("the ranges", data, end, RANGES_SIZE);
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

#define TRAP_SIZE	65536
static uint8_t kept[TRAP_SIZE];

void keep_write(void)
{
	uint8_t *trap = disk + (TRAP << block_shift);

	memcpy(kept, trap, sizeof(kept));
	memset(trap, 0, sizeof(kept));
}

void land_write(void)
{
	memcpy(disk + (TRAP << block_shift), kept, sizeof(kept));
}

void answer(struct queue *queue, const struct capsule *capsule, enum step step, struct reply *reply)
{
	read_sgl(reply);
	switch (step) {
	case CONNECT_ADMIN: case CONNECT_IO:
		return connect_queue(queue, capsule, reply);
	case CAPABILITIES: case STATUS: case PROPERTY:
		return get_property(reply);
	case CONFIGURE:
		return set_property(reply);
	case CONTROLLER: case LIST: case NAMESPACE: case DESCRIPTORS: case INDEPENDENT:
		usleep(1000 * slow);
		return identify(queue, reply);
	case LOG: case ENTRIES:
		usleep(1000 * slow);
		return discovery_log(queue, reply);
	case READ: case WRITE: case TRAP_READ: case TRAP_WRITE:
		return read_write(queue, capsule, reply);
	case QUEUES:
		/* Grant the requested number of queues. */
		reply->result = get(reply->sqe + 44, 4);
		return;
	case EVENT:
		queue->event_cid = reply->cid;
		return tell_event(reply);
	case CHANGED:
		return changed_log(queue, reply);
	case EFFECTS:
		return effects_log(queue, reply);
	case FORMAT:
		return format(reply);
	case BEHAVIOR:
		return take_behavior(queue, capsule, reply);
	case DISCARD:
		return discard(queue, capsule, reply);
	case KEEP_ALIVE: case EVENTS: case FLUSH: case ZEROES:
		return;
	default:
		return fail(reply, INVALID_OPCODE);
	}
}
