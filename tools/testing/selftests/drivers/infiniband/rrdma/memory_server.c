// SPDX-License-Identifier: GPL-2.0
/*
 * The peer of the sample disk: memory that its clients read and write.
 *
 *	memory_server ADDRESS PORT BYTES [ADVERTISED]
 *
 * Prints "ready" when it listens. Accepts any number of clients, one after the other, and names
 * the memory in the private data of its replies: address and length (64 bits each), and key (32
 * bits), in network byte order. With ADVERTISED it names that length instead. Has no work while
 * clients read and write. Runs until it is killed.
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

struct memory {
	uint64_t address;
	uint64_t length;
	uint32_t rkey;
} __attribute__((packed));

static struct ibv_pd *pd;
static struct ibv_mr *mr;
static void *bytes;
static size_t size;
static uint64_t advertised;

/* Registers the memory on the device of the first client; later ones must use the same. */
static void expose(struct rdma_cm_id *id)
{
	if (pd)
		return;
	pd = ibv_alloc_pd(id->verbs);
	if (!pd)
		err(1, "protection domain");
	mr = ibv_reg_mr(pd, bytes, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		err(1, "registration");
}

static void serve(struct rdma_cm_id *id, const struct rdma_conn_param *request)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct memory memory;
	struct rdma_conn_param reply = {
		.private_data = &memory,
		.private_data_len = sizeof(memory),
		.responder_resources = request->responder_resources,
		.rnr_retry_count = 7,
	};

	expose(id);
	if (rdma_create_qp(id, pd, &attr))
		err(1, "queue pair");
	memory.address = htobe64((uintptr_t)bytes);
	memory.length = htobe64(advertised);
	memory.rkey = htobe32(mr->rkey);
	if (rdma_accept(id, &reply))
		warn("accept");
}

static void end(struct rdma_cm_id *id)
{
	rdma_disconnect(id);
	if (id->qp)
		rdma_destroy_qp(id);
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *found;
	struct rdma_cm_id *listener;
	struct rdma_cm_event *event;

	if (argc < 4)
		errx(2, "usage: memory_server ADDRESS PORT BYTES [ADVERTISED]");
	size = strtoull(argv[3], NULL, 0);
	advertised = argc > 4 ? strtoull(argv[4], NULL, 0) : size;
	bytes = calloc(1, size);
	if (!bytes || !channel || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP))
		err(1, "start");
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &found) ||
	    rdma_bind_addr(listener, found->ai_src_addr) || rdma_listen(listener, 8))
		err(1, "listen");
	puts("ready");
	fflush(stdout);
	while (!rdma_get_cm_event(channel, &event)) {
		struct rdma_cm_id *id = event->id, *gone = NULL;

		switch (event->event) {
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			serve(id, &event->param.conn);
			break;
		case RDMA_CM_EVENT_DISCONNECTED:
			end(id);
			break;
		case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		case RDMA_CM_EVENT_CONNECT_ERROR:
		case RDMA_CM_EVENT_UNREACHABLE:
		case RDMA_CM_EVENT_REJECTED:
			end(id);
			gone = id;
			break;
		default:
			break;
		}
		rdma_ack_cm_event(event);
		if (gone)
			rdma_destroy_id(gone);
	}
	err(1, "event");
}
