// SPDX-License-Identifier: GPL-2.0
/*
 * The commands of hostile_host, and the fields that a step may change.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>

#include "host.h"

#define FABRICS		0x7f
#define CONNECT		0x01
/* PSDT: MPTR is an address, and the data is described by an SGL. */
#define SGL_METABUF	0x40
/* SGL descriptor types: data block with an offset, keyed data block with an address. */
#define SGL_INLINE	0x01
#define SGL_KEYED	0x40
/* Offsets of fields in the data of Connect. */
#define DATA_CNTLID	16
#define DATA_SUBNQN	256
#define DATA_HOSTNQN	512
#define NQN_SIZE	256

#define HOSTNQN		"nqn.2014-08.org.nvmexpress:uuid:5e1f7e57-0000-4000-8000-00000000000b"

uint16_t controller = 0xffff;
const char *subsystem;

/* A correct command. */
static const struct template {
	const char *name;
	uint8_t opcode;
	uint8_t fctype;
	uint32_t nsid;
	/* Bytes of data, by key. */
	uint32_t length;
	uint32_t cdw10;
	uint32_t cdw11;
	uint32_t cdw12;
} templates[] = {
	{ .name = "connect", .opcode = FABRICS, .fctype = CONNECT, .length = 1024, .cdw11 = 31 },
	/* CC: enable, entry sizes of 64 and 16 bytes. */
	{ .name = "set", .opcode = FABRICS, .fctype = 0x00, .cdw11 = 0x14, .cdw12 = 0x460001 },
	/* CSTS */
	{ .name = "get", .opcode = FABRICS, .fctype = 0x04, .cdw11 = 0x1c },
	{ .name = "auth-send", .opcode = FABRICS, .fctype = 0x05, .length = 64,
	  .cdw10 = 0xe9010100, .cdw11 = 64 },
	{ .name = "auth-receive", .opcode = FABRICS, .fctype = 0x06, .length = 64,
	  .cdw10 = 0xe9010100, .cdw11 = 64 },
	{ .name = "disconnect", .opcode = FABRICS, .fctype = 0x08 },
	{ .name = "identify", .opcode = 0x06, .length = 4096, .cdw10 = 1 },
	/* Number of queues. */
	{ .name = "set-features", .opcode = 0x09, .cdw10 = 7, .cdw11 = 0x30003 },
	/* SMART */
	{ .name = "get-log", .opcode = 0x02, .nsid = 0xffffffff, .length = 512, .cdw10 = 0x7f0002 },
	{ .name = "keep-alive", .opcode = 0x18 },
	{ .name = "event", .opcode = 0x0c },
	{ .name = "abort", .opcode = 0x08 },
	{ .name = "create-sq", .opcode = 0x01, .cdw10 = 0x1f0001, .cdw11 = 1 },
	{ .name = "create-cq", .opcode = 0x05, .cdw10 = 0x1f0001, .cdw11 = 1 },
	{ .name = "flush", .opcode = 0x00, .nsid = 1 },
	{ .name = "write", .opcode = 0x01, .nsid = 1, .length = 4096, .cdw12 = 7 },
	{ .name = "read", .opcode = 0x02, .nsid = 1, .length = 4096, .cdw12 = 7 },
	/* One range to deallocate. */
	{ .name = "dsm", .opcode = 0x09, .nsid = 1, .length = 4096, .cdw11 = 4 },
	{ .name = "zeroes", .opcode = 0x08, .nsid = 1, .cdw12 = 7 },
	{ .name = "register", .opcode = 0x0d, .nsid = 1, .length = 16 },
};

/* Fields of the SQE that hold a number. */
static const struct field {
	const char *name;
	unsigned int offset;
	unsigned int size;
} fields[] = {
	{ "op", 0, 1 }, { "flags", 1, 1 }, { "cid", 2, 2 }, { "nsid", 4, 4 }, { "fctype", 4, 1 },
	{ "addr", 24, 8 }, { "key", 35, 4 }, { "type", 39, 1 },
	{ "cdw10", 40, 4 }, { "cdw11", 44, 4 }, { "cdw12", 48, 4 }, { "cdw13", 52, 4 },
	{ "cdw14", 56, 4 }, { "cdw15", 60, 4 },
	{ "recfmt", 40, 2 }, { "qid", 42, 2 }, { "sqsize", 44, 2 }, { "kato", 48, 4 },
	{ "attrib", 40, 1 }, { "offset", 44, 4 }, { "value", 48, 8 },
	{ "slba", 40, 8 }, { "nlb", 48, 2 },
};

static uint8_t capsule_data[CAPSULE_DATA];

static void fill_connect_data(void)
{
	uint8_t *data = queue_data();

	memset(data, 0, 1024);
	memset(data, 0x5e, 16);
	put(data + DATA_CNTLID, controller, 2);
	strcpy((char *)data + DATA_SUBNQN, subsystem);
	strcpy((char *)data + DATA_HOSTNQN, HOSTNQN);
}

bool command_make(const char *name, struct command *command)
{
	uint8_t *sqe = command->capsule.sqe;
	const struct template *template;
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(templates) && strcmp(name, templates[n].name); n++)
		;
	if (n == ARRAY_SIZE(templates))
		return false;
	template = &templates[n];
	*command = (struct command) { .name = template->name, .count = 1 };
	command->capsule.length = SQE_SIZE;
	command->capsule.data = capsule_data;
	put(sqe, template->opcode, 1);
	put(sqe + 1, SGL_METABUF, 1);
	put(sqe + 4, template->opcode == FABRICS ? template->fctype : template->nsid, 4);
	put(sqe + 24, template->length ? (uintptr_t)queue_data() : 0, 8);
	put(sqe + 32, template->length, 3);
	put(sqe + 35, template->length ? queue_key() : 0, 4);
	put(sqe + 39, SGL_KEYED, 1);
	put(sqe + 40, template->cdw10, 4);
	put(sqe + 44, template->cdw11, 4);
	put(sqe + 48, template->cdw12, 4);
	if (template->opcode == FABRICS && template->fctype == CONNECT)
		fill_connect_data();
	return true;
}

static unsigned long long number(const char *text)
{
	unsigned long long result;
	char *end;

	errno = 0;
	result = text ? strtoull(text, &end, 0) : 0;
	if (!text || errno || end == text || *end)
		errx(2, "not a number: %s", text ? text : "");
	return result;
}

/* Makes the data part of the capsule, with this length in the SGL descriptor. */
static void make_inline(struct command *command, unsigned int length)
{
	uint8_t *sqe = command->capsule.sqe;

	put(sqe + 24, 0, 8);
	put(sqe + 32, length, 4);
	put(sqe + 36, 0, 3);
	put(sqe + 39, SGL_INLINE, 1);
	memcpy(capsule_data, queue_data(), length < CAPSULE_DATA ? length : CAPSULE_DATA);
	command->capsule.length = SQE_SIZE + length;
}

/* Names data by key, also in a command that has none. */
static void name_data(struct command *command, unsigned int length)
{
	uint8_t *sqe = command->capsule.sqe;

	put(sqe + 24, (uintptr_t)queue_data(), 8);
	put(sqe + 32, length, 3);
	put(sqe + 35, queue_key(), 4);
}

/* Puts an NQN into the data of Connect. Without a terminator if it is too long for one. */
static void set_nqn(unsigned int offset, const char *nqn)
{
	strncpy((char *)queue_data() + offset, nqn, NQN_SIZE);
}

/* Changes what is not a field of the SQE with a number. */
static bool set_other(struct command *command, const char *field, const char *value)
{
	uint8_t *sqe = command->capsule.sqe;

	if (!strcmp(field, "len"))
		put(sqe + 32, number(value), sqe[39] == SGL_INLINE ? 4 : 3);
	else if (!strcmp(field, "inline"))
		make_inline(command, number(value));
	else if (!strcmp(field, "data"))
		name_data(command, number(value));
	else if (!strcmp(field, "capsule"))
		command->capsule.length = number(value);
	else if (!strcmp(field, "count"))
		command->count = number(value);
	else if (!strcmp(field, "cntlid"))
		put(queue_data() + DATA_CNTLID, number(value), 2);
	else if (!strcmp(field, "subnqn"))
		set_nqn(DATA_SUBNQN, value);
	else if (!strcmp(field, "hostnqn"))
		set_nqn(DATA_HOSTNQN, value);
	else if (!strcmp(field, "nowait"))
		command->nowait = true;
	else if (!strcmp(field, "hold"))
		command->hold = true;
	else if (!strcmp(field, "show"))
		command->show = true;
	else
		return false;
	if (command->capsule.length > SQE_SIZE + CAPSULE_DATA || command->count > WINDOW)
		errx(2, "too large: %s", field);
	return true;
}

bool command_set(struct command *command, const char *field, const char *value)
{
	unsigned int n;

	if (!strcmp(field, "cid"))
		command->same_cid = true;
	for (n = 0; n < ARRAY_SIZE(fields); n++) {
		if (strcmp(field, fields[n].name))
			continue;
		put(command->capsule.sqe + fields[n].offset, number(value), fields[n].size);
		return true;
	}
	return set_other(command, field, value);
}

void command_usage(FILE *out)
{
	unsigned int n;

	fprintf(out, "commands:");
	for (n = 0; n < ARRAY_SIZE(templates); n++)
		fprintf(out, " %s", templates[n].name);
	fprintf(out, "\nfields:");
	for (n = 0; n < ARRAY_SIZE(fields); n++)
		fprintf(out, " %s", fields[n].name);
	fprintf(out, "\nalso: len data inline capsule count cntlid subnqn hostnqn nowait hold show\n");
}
