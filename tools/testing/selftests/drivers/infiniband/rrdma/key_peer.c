// SPDX-License-Identifier: GPL-2.0
/*
 * A peer of the sample key_ping that violates its protocol in one way, and that has no
 * limit of the size.
 *
 *	key_peer client ADDRESS PORT SIZE TWIST [TOLD]
 *	key_peer server ADDRESS PORT SIZE TWIST [TOLD]
 *
 * Does one ping of SIZE bytes. TWIST is the protocol violation, or "none". As client it
 * prints "same" or "different" after it has compared the data. It prints the status of
 * a failed work request. With TOLD it sends that many bytes of private data, and prints
 * how many it received.
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

/* Size of the server's buffer: more than the sample's largest ping, 1 MiB. */
#define SINK_ROOM	(2 * 1024 * 1024)

struct advert {
	uint64_t address;
	uint32_t rkey;
	uint32_t length;
};

static const char *twist;
static struct rdma_cm_id *id;
static size_t size;

/* Message buffers, with room for messages that are too long. */
static uint8_t outbox[128], inbox[128];
static struct ibv_mr *outbox_mr, *inbox_mr;

static pthread_t watcher;

/*
 * Disconnects when the peer does. That flushes the posted work requests, which ends
 * the program. No other thread reads the events: rdma_disconnect() does not wait for
 * one, because the ID was migrated to its own channel.
 */
static void *disconnect_too(void *unused)
{
	struct rdma_cm_event *event;
	int gone = 0;

	while (!gone && !rdma_get_cm_event(id->channel, &event)) {
		gone = event->event == RDMA_CM_EVENT_DISCONNECTED;
		rdma_ack_cm_event(event);
	}
	rdma_disconnect(id);
	return unused;
}

/* Byte of the private data. Not zero, because the CM pads private data with zeroes. */
#define TOLD	0xa5

static uint8_t told[256];

/* Prints the length of the received private data, without the padding. */
static void print_told(const struct rdma_cm_event *event)
{
	const uint8_t *data = event->param.conn.private_data;
	size_t length = event->param.conn.private_data_len, same = 0;

	while (same < length && data[same] == TOLD)
		same++;
	for (size_t i = same; i < length; i++)
		if (data[i])
			errx(1, "byte %zu is %#x", i, data[i]);
	printf("%s: told %zu bytes\n", rdma_event_str(event->event), same);
}

static void watch(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel || rdma_migrate_id(id, channel))
		err(1, "events");
	errno = pthread_create(&watcher, NULL, disconnect_too, NULL);
	if (errno)
		err(1, "thread");
}

static int is(const char *name)
{
	return !strcmp(twist, name);
}

static struct ibv_mr *mr(struct ibv_mr *mr)
{
	if (!mr)
		err(1, "registration");
	return mr;
}

static void listen_for_answer(void)
{
	if (rdma_post_recv(id, NULL, inbox, sizeof(inbox), inbox_mr))
		err(1, "receive");
}

/*
 * Handles the completion of a work request; ends the program if it failed. It does not
 * disconnect: the disconnect could reach the peer before the error of its own queue pair.
 */
static void done(const char *what, struct ibv_wc *wc, int ret)
{
	if (ret < 0)
		err(1, "%s", what);
	if (!wc->status)
		return;
	printf("%s: %s\n", what, ibv_wc_status_str(wc->status));
	pthread_join(watcher, NULL);
	exit(0);
}

static void sent(const char *what)
{
	struct ibv_wc wc;

	done(what, &wc, rdma_get_send_comp(id, &wc));
}

static uint32_t received(void)
{
	struct ibv_wc wc;

	done("answer", &wc, rdma_get_recv_comp(id, &wc));
	return wc.byte_len;
}

/* Waits until the peer ends the connection. */
static void end(void)
{
	struct ibv_wc wc;

	listen_for_answer();
	done("end", &wc, rdma_get_recv_comp(id, &wc));
	printf("one message too many\n");
	exit(1);
}

static void say(const void *message, uint32_t length)
{
	memcpy(outbox, message, sizeof(struct advert));
	if (rdma_post_send(id, NULL, outbox, length, outbox_mr, IBV_SEND_SIGNALED))
		err(1, "send");
	sent("message");
}

/* Length of a message, as TWIST changes it. */
static uint32_t message_length(void)
{
	if (is("empty"))
		return 0;
	if (is("short"))
		return sizeof(struct advert) - 1;
	if (is("long"))
		return sizeof(struct advert) + 1;
	if (is("longer"))
		return sizeof(outbox);
	return sizeof(struct advert);
}

static void advertise(void *data, uint32_t rkey, uint32_t length)
{
	struct advert advert = {
		.address = htobe64((uintptr_t)data),
		.rkey = htobe32(rkey),
		.length = htobe32(length),
	};

	say(&advert, message_length());
}

static struct advert next_advert(void)
{
	struct advert advert;
	uint32_t length = received();

	if (length != sizeof(advert)) {
		printf("a message of %u bytes\n", length);
		exit(1);
	}
	memcpy(&advert, inbox, sizeof(advert));
	advert.address = be64toh(advert.address);
	advert.rkey = be32toh(advert.rkey);
	advert.length = be32toh(advert.length);
	return advert;
}

static void fill(uint8_t *data)
{
	for (size_t i = 0; i < size; i++)
		data[i] = i * 31 + i / 256;
}

static void client(void)
{
	uint8_t *source = calloc(1, size), *sink = calloc(1, size);
	struct ibv_mr *source_mr, *sink_mr;

	if (!source || !sink)
		err(1, "memory");
	fill(source);
	source_mr = mr(is("unreadable") ? rdma_reg_msgs(id, source, size) :
					  rdma_reg_read(id, source, size));
	sink_mr = mr(is("unwritable") ? rdma_reg_read(id, sink, size) :
					rdma_reg_write(id, sink, size));
	listen_for_answer();
	if (is("silent")) {
		printf("connected\n");
		end();
	}
	if (is("nothing"))
		advertise(source, source_mr->rkey, 0);
	else if (is("wrap"))
		advertise((void *)(UINTPTR_MAX - 8), source_mr->rkey, size);
	else if (is("key"))
		advertise(source, source_mr->rkey ^ 0x55, size);
	else if (is("beyond"))
		advertise(source, source_mr->rkey, size + 1);
	else
		advertise(source, source_mr->rkey, size);
	if (is("vanish"))
		raise(SIGKILL);
	received();
	listen_for_answer();
	if (is("no-sink"))
		end();
	if (is("twice"))
		advertise(source, source_mr->rkey, size);
	advertise(sink, sink_mr->rkey, is("small-sink") ? size - 1 : size);
	received();
	printf("%s\n", memcmp(source, sink, size) ? "different" : "same");
}

static void move(const char *what, int write, const struct advert *to, uint8_t *data,
		 struct ibv_mr *data_mr, uint32_t length)
{
	int ret = write ? rdma_post_write(id, NULL, data, length, data_mr, IBV_SEND_SIGNALED,
					  to->address, to->rkey) :
			  rdma_post_read(id, NULL, data, length, data_mr, IBV_SEND_SIGNALED,
					 to->address, to->rkey);

	if (ret)
		err(1, "%s", what);
	sent(what);
}

static void server(void)
{
	uint8_t *data = calloc(1, SINK_ROOM);
	struct ibv_mr *data_mr = mr(rdma_reg_msgs(id, data, SINK_ROOM));
	struct advert source, sink;
	uint8_t answer[sizeof(struct advert)] = {0};

	if (is("silent"))
		end();
	source = next_advert();
	listen_for_answer();
	if (is("vanish"))
		raise(SIGKILL);
	if (is("beyond"))
		move("read", 0, &source, data, data_mr, source.length + 1);
	if (is("write-source"))
		move("write", 1, &source, data, data_mr, source.length);
	if (is("key"))
		source.rkey ^= 0x55;
	move("read", 0, &source, data, data_mr, source.length);
	say(answer, message_length());
	if (is("twice"))
		say(answer, message_length());
	sink = next_advert();
	listen_for_answer();
	/* The client knows that its source was read, so the rkey must be invalidated. */
	if (is("late"))
		move("late read", 0, &source, data, data_mr, source.length);
	if (is("read-sink"))
		move("read", 0, &sink, data, data_mr, sink.length);
	if (is("corrupt"))
		data[size / 2] ^= 1;
	move("write", 1, &sink, data, data_mr, sink.length);
	say(answer, message_length());
	received();
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_all = 0,
	};
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 7, .rnr_retry_count = 7,
	};
	struct rdma_cm_id *listener;
	int is_server;

	if (argc != 6 && argc != 7)
		errx(2, "usage: key_peer client|server ADDRESS PORT SIZE TWIST [TOLD]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	is_server = !strcmp(argv[1], "server");
	size = strtoul(argv[4], NULL, 0);
	twist = argv[5];
	if (is_server)
		hints.ai_flags = RAI_PASSIVE;
	memset(told, TOLD, sizeof(told));
	if (argc == 7) {
		param.private_data = told;
		param.private_data_len = strtoul(argv[6], NULL, 0);
	}
	if (is("no-reads"))
		param.responder_resources = 0;
	if (rdma_getaddrinfo(argv[2], argv[3], &hints, &info))
		err(1, "address");
	if (is_server) {
		if (rdma_create_ep(&listener, info, NULL, &attr) || rdma_listen(listener, 1))
			err(1, "listen");
		printf("listens\n");
		if (rdma_get_request(listener, &id))
			err(1, "request");
		if (argc == 7)
			print_told(id->event);
		if (is("reject")) {
			if (rdma_reject(id, told, param.private_data_len))
				err(1, "reject");
			return 0;
		}
	} else if (rdma_create_ep(&id, info, NULL, &attr)) {
		err(1, "endpoint");
	}
	outbox_mr = mr(rdma_reg_msgs(id, outbox, sizeof(outbox)));
	inbox_mr = mr(rdma_reg_msgs(id, inbox, sizeof(inbox)));
	if (is_server) {
		listen_for_answer();
		if (rdma_accept(id, &param))
			err(1, "accept");
		watch();
		server();
	} else {
		if (rdma_connect(id, &param)) {
			if (argc == 7 && id->event)
				print_told(id->event);
			err(1, "connect");
		}
		if (argc == 7)
			print_told(id->event);
		watch();
		client();
	}
	rdma_disconnect(id);
	return 0;
}
