// SPDX-License-Identifier: GPL-2.0
/*
 * A connection of hostile_host, and its queue pair.
 *
 * The connection manager of librdmacm does not know the queue pair, so that RDMA_CM_EVENT_CONNECT_RESPONSE
 * comes to this file, which can leave out RTU.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "host.h"

/* Bytes of a receive: more than a response has. */
#define RECEIVE_SIZE	64

struct queue {
	struct rdma_cm_id *id;
	struct rdma_event_channel *events;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct memory {
		uint8_t sqes[WINDOW][SQE_SIZE];
		uint8_t receives[WINDOW][RECEIVE_SIZE];
		uint8_t data[CAPSULE_DATA];
	} *memory;
	/* Commands sent. */
	unsigned int sent;
	/* The work request of queue_hold(), if it has an entry. */
	struct ibv_send_wr held;
	struct ibv_sge held_sge;
	/* Responses that were received and not returned by queue_wait() yet. */
	struct response responses[WINDOW];
	unsigned int received;
	unsigned int returned;
	uint32_t dest;
	/* Receives to post; see struct request. */
	unsigned int receives;
	bool gone;
	bool broken;
};

/* Shared by all queues: the protection domain, and the memory that commands name by key. */
static struct ibv_pd *pd;
static struct ibv_mr *data_mr;
static uint8_t *data;

static void share(struct ibv_context *device)
{
	if (pd)
		return;
	data = mmap(NULL, DATA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		err(1, "mmap");
	pd = ibv_alloc_pd(device);
	if (!pd)
		err(1, "ibv_alloc_pd");
	data_mr = ibv_reg_mr(pd, data, DATA_SIZE, IBV_ACCESS_LOCAL_WRITE |
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!data_mr)
		err(1, "ibv_reg_mr");
}

uint8_t *queue_data(void)
{
	return data;
}

uint32_t queue_key(void)
{
	return data_mr->rkey;
}

/* Milliseconds since boot. */
static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000ull + time.tv_nsec / 1000000;
}

/* Waits for an event of the connection manager; NULL if there is none in time. */
static struct rdma_cm_event *await_cm(struct queue *queue, unsigned int milliseconds)
{
	struct pollfd source = { .fd = queue->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&source, 1, milliseconds) < 0)
		err(1, "poll");
	if (!source.revents || rdma_get_cm_event(queue->events, &event))
		return NULL;
	return event;
}

/* Fills in the verdict from an event, or from the lack of one. */
static void judge(struct verdict *verdict, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *parameters;
	const uint8_t *private;

	verdict->fate = FAILED;
	verdict->event = event ? rdma_event_str(event->event) : "no event";
	if (!event)
		return;
	parameters = &event->param.conn;
	private = parameters->private_data;
	if (event->event == RDMA_CM_EVENT_REJECTED) {
		verdict->fate = REJECTED;
		verdict->reason = event->status;
		verdict->recfmt = parameters->private_data_len < 4 ? 0 : get(private, 2);
		verdict->status = parameters->private_data_len < 4 ? 0 : get(private + 2, 2);
	} else if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		verdict->fate = ACCEPTED;
		verdict->crqsize = parameters->private_data_len < 4 ? 0 : get(private + 2, 2);
	}
}

/* Waits for this event. Any other one is a verdict. */
static bool expect(struct queue *queue, enum rdma_cm_event_type type, struct verdict *verdict)
{
	struct rdma_cm_event *event = await_cm(queue, patience);
	bool found = event && event->event == type;

	judge(verdict, event);
	if (event)
		rdma_ack_cm_event(event);
	return found;
}

static bool resolve(struct queue *queue, struct verdict *verdict)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct rdma_addrinfo *found;

	if (rdma_getaddrinfo(address, port, &hints, &found))
		err(1, "rdma_getaddrinfo");
	if (source_address && inet_pton(AF_INET, source_address, &from.sin_addr) != 1)
		errx(2, "no address: %s", source_address);
	if (rdma_resolve_addr(queue->id, source_address ? (struct sockaddr *)&from : NULL,
			      found->ai_dst_addr, 5000))
		err(1, "rdma_resolve_addr");
	rdma_freeaddrinfo(found);
	if (!expect(queue, RDMA_CM_EVENT_ADDR_RESOLVED, verdict))
		return false;
	if (rdma_resolve_route(queue->id, 5000))
		err(1, "rdma_resolve_route");
	return expect(queue, RDMA_CM_EVENT_ROUTE_RESOLVED, verdict);
}

static bool to_state(struct queue *queue, enum ibv_qp_state state)
{
	struct ibv_qp_attr attributes = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(queue->id, &attributes, &mask))
		return false;
	if (state == IBV_QPS_RTR && queue->dest)
		attributes.dest_qp_num = queue->dest;
	return !ibv_modify_qp(queue->qp, &attributes, mask);
}

static void post_receive(struct queue *queue, unsigned int number)
{
	struct ibv_sge sge = { .addr = (uintptr_t)queue->memory->receives[number],
			       .length = RECEIVE_SIZE, .lkey = queue->mr->lkey };
	struct ibv_recv_wr request = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;

	/* Fails in the error state. */
	if (ibv_post_recv(queue->qp, &request, &bad))
		queue->broken = true;
}

static void make_qp(struct queue *queue)
{
	struct ibv_qp_init_attr attributes = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = WINDOW, .max_recv_wr = WINDOW,
			 .max_send_sge = 2, .max_recv_sge = 1 },
	};
	unsigned int number;

	share(queue->id->verbs);
	queue->memory = calloc(1, sizeof(*queue->memory));
	queue->channel = ibv_create_comp_channel(queue->id->verbs);
	if (!queue->memory || !queue->channel)
		err(1, "ibv_create_comp_channel");
	queue->cq = ibv_create_cq(queue->id->verbs, 2 * WINDOW, NULL, queue->channel, 0);
	if (!queue->cq || fcntl(queue->channel->fd, F_SETFL, O_NONBLOCK))
		err(1, "ibv_create_cq");
	attributes.send_cq = queue->cq;
	attributes.recv_cq = queue->cq;
	queue->qp = ibv_create_qp(pd, &attributes);
	queue->mr = ibv_reg_mr(pd, queue->memory, sizeof(*queue->memory), IBV_ACCESS_LOCAL_WRITE);
	if (!queue->qp || !queue->mr)
		err(1, "ibv_create_qp");
	if (!to_state(queue, IBV_QPS_INIT))
		err(1, "ibv_modify_qp");
	for (number = 0; number < queue->receives; number++)
		post_receive(queue, number);
}

static bool connect_queue(struct queue *queue, const struct request *request,
			  struct verdict *verdict)
{
	struct rdma_conn_param parameters = {
		.private_data = request->data, .private_data_len = request->length,
		.responder_resources = request->responder_resources,
		.retry_count = request->retry_count, .rnr_retry_count = 7, .qp_num = queue->qp->qp_num,
	};

	if (rdma_connect(queue->id, &parameters))
		err(1, "rdma_connect");
	if (!expect(queue, RDMA_CM_EVENT_CONNECT_RESPONSE, verdict))
		return false;
	/* Again to INIT: the connection manager knows the access rights only now. */
	if (!to_state(queue, IBV_QPS_INIT) || !to_state(queue, IBV_QPS_RTR) ||
	    !to_state(queue, IBV_QPS_RTS))
		err(1, "ibv_modify_qp");
	if (!request->no_rtu && rdma_establish(queue->id))
		verdict->fate = FAILED;
	return verdict->fate == ACCEPTED;
}

static void queue_free(struct queue *queue)
{
	if (queue->qp && ibv_destroy_qp(queue->qp))
		err(1, "ibv_destroy_qp");
	if (queue->cq && ibv_destroy_cq(queue->cq))
		err(1, "ibv_destroy_cq");
	if (queue->channel)
		ibv_destroy_comp_channel(queue->channel);
	if (queue->mr)
		ibv_dereg_mr(queue->mr);
	rdma_destroy_id(queue->id);
	rdma_destroy_event_channel(queue->events);
	free(queue->memory);
	free(queue);
}

struct queue *queue_open(const struct request *request, struct verdict *verdict)
{
	struct queue *queue = calloc(1, sizeof(*queue));

	if (!queue || !(queue->events = rdma_create_event_channel()))
		err(1, "rdma_create_event_channel");
	if (rdma_create_id(queue->events, &queue->id, NULL, RDMA_PS_TCP))
		err(1, "rdma_create_id");
	if (request->ack_timeout &&
	    rdma_set_option(queue->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			    (void *)&request->ack_timeout, sizeof(request->ack_timeout)))
		err(1, "rdma_set_option");
	queue->dest = request->dest;
	queue->receives = request->receives;
	if (resolve(queue, verdict)) {
		make_qp(queue);
		if (connect_queue(queue, request, verdict))
			return queue;
	}
	queue_free(queue);
	return NULL;
}

void queue_break(struct queue *queue)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_ERR };

	if (ibv_modify_qp(queue->qp, &attributes, IBV_QP_STATE))
		err(1, "ibv_modify_qp");
}

void queue_close(struct queue *queue)
{
	/* Fails if the target has disconnected. */
	rdma_disconnect(queue->id);
	queue_free(queue);
}

void queue_hold(struct queue *queue, const struct capsule *capsule)
{
	unsigned int slot = queue->sent++ % WINDOW;

	memcpy(queue->memory->sqes[slot], capsule->sqe, SQE_SIZE);
	queue->held_sge = (struct ibv_sge){ .addr = (uintptr_t)queue->memory->sqes[slot],
					    .length = SQE_SIZE, .lkey = queue->mr->lkey };
	queue->held = (struct ibv_send_wr){ .wr_id = WINDOW, .opcode = IBV_WR_SEND,
					    .send_flags = IBV_SEND_SIGNALED,
					    .sg_list = &queue->held_sge, .num_sge = 1 };
}

bool queue_send(struct queue *queue, const struct capsule *capsule)
{
	unsigned int slot = queue->sent++ % WINDOW;
	unsigned int head = capsule->length < SQE_SIZE ? capsule->length : SQE_SIZE;
	struct ibv_sge sges[] = {
		{ .addr = (uintptr_t)queue->memory->sqes[slot], .length = head },
		{ .addr = (uintptr_t)queue->memory->data, .length = capsule->length - head },
	};
	struct ibv_send_wr request = {
		.wr_id = WINDOW, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = sges, .num_sge = !!sges[0].length + !!sges[1].length,
	}, *bad;

	sges[0].lkey = queue->mr->lkey;
	sges[1].lkey = queue->mr->lkey;
	memcpy(queue->memory->sqes[slot], capsule->sqe, SQE_SIZE);
	if (capsule->data)
		memcpy(queue->memory->data, capsule->data, sges[1].length);
	if (queue->held.num_sge) {
		struct ibv_send_wr first = queue->held;

		first.next = &request;
		queue->held.num_sge = 0;
		return !ibv_post_send(queue->qp, &first, &bad);
	}
	return !ibv_post_send(queue->qp, &request, &bad);
}

static void take_response(struct queue *queue, const uint8_t *cqe, unsigned int length)
{
	struct response *response = &queue->responses[queue->received++ % WINDOW];

	if (length != CQE_SIZE)
		errx(4, "the target violates the protocol: a response of %u bytes", length);
	response->result = get(cqe, 8);
	response->cid = get(cqe + 12, 2);
	response->status = get(cqe + 14, 2) >> 1 & 0x7ff;
}

static void take_completions(struct queue *queue)
{
	struct ibv_wc completion;

	while (ibv_poll_cq(queue->cq, 1, &completion) > 0) {
		if (completion.status != IBV_WC_SUCCESS) {
			queue->broken = true;
		} else if (completion.wr_id < WINDOW) {
			take_response(queue, queue->memory->receives[completion.wr_id],
				      completion.byte_len);
			if (queue->receives == WINDOW)
				post_receive(queue, completion.wr_id);
		}
	}
}

/* Takes events of the connection manager, after one is known to be there. */
static void take_cm(struct queue *queue)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(queue->events, &event))
		err(1, "rdma_get_cm_event");
	switch (event->event) {
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		queue->gone = true;
		break;
	default:
		break;
	}
	rdma_ack_cm_event(event);
}

/* Sleeps until something happens, or the time is over. */
static void sleep_until(struct queue *queue, uint64_t end)
{
	struct pollfd sources[] = {
		{ .fd = queue->channel->fd, .events = POLLIN },
		{ .fd = queue->events->fd, .events = POLLIN },
	};
	uint64_t start = now();
	struct ibv_cq *cq;
	void *context;

	if (poll(sources, ARRAY_SIZE(sources), start < end ? end - start : 0) < 0)
		err(1, "poll");
	if (sources[0].revents && !ibv_get_cq_event(queue->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	if (sources[1].revents)
		take_cm(queue);
}

enum event queue_wait(struct queue *queue, unsigned int milliseconds, struct response *response)
{
	uint64_t end = now() + milliseconds;

	for (;;) {
		bool gone = queue->gone;

		if (ibv_req_notify_cq(queue->cq, 0))
			err(1, "ibv_req_notify_cq");
		take_completions(queue);
		if (queue->returned != queue->received) {
			*response = queue->responses[queue->returned++ % WINDOW];
			return RESPONSE;
		}
		if (gone)
			return GONE;
		if (now() >= end)
			return queue->broken ? BROKEN : SILENCE;
		sleep_until(queue, end);
	}
}
