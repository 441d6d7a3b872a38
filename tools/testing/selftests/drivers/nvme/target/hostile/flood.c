// SPDX-License-Identifier: GPL-2.0
/*
 * Many connection requests of hostile_host at a time. The host has no queue pairs for them, so that it needs little
 * memory.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

/* Requests that the target has not answered yet. */
#define AT_A_TIME	32

struct attempt {
	struct rdma_cm_id *id;
	/* That of a queue pair which does not exist. The connection manager knows peers by it. */
	uint32_t qp_num;
	bool accepted;
};

static struct rdma_event_channel *channel;
static unsigned int open_requests;
static struct {
	unsigned int accepted, rejected, unexplained, failed, ended;
} outcomes;

static void begin(const struct flood *flood, unsigned int number)
{
	struct attempt *attempt = calloc(1, sizeof(*attempt));
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *found;
	struct sockaddr_in from = { .sin_family = AF_INET };

	if (attempt)
		attempt->qp_num = (getpid() % 0xff) << 16 | (number & 0xffff);
	if (!attempt || rdma_create_id(channel, &attempt->id, attempt, RDMA_PS_TCP))
		err(1, "rdma_create_id");
	if (rdma_getaddrinfo(address, port, &hints, &found))
		err(1, "rdma_getaddrinfo");
	if (flood->source && inet_pton(AF_INET, flood->source, &from.sin_addr) != 1)
		errx(2, "no address: %s", flood->source);
	from.sin_addr.s_addr = htonl(ntohl(from.sin_addr.s_addr) + number % flood->sources);
	if (rdma_resolve_addr(attempt->id, flood->source ? (struct sockaddr *)&from : NULL,
			      found->ai_dst_addr, 5000))
		err(1, "rdma_resolve_addr");
	rdma_freeaddrinfo(found);
	open_requests++;
}

static void finish(struct attempt *attempt)
{
	if (rdma_destroy_id(attempt->id))
		err(1, "rdma_destroy_id");
	free(attempt);
}

static void send_request(const struct flood *flood, struct attempt *attempt)
{
	struct rdma_conn_param parameters = {
		.private_data = flood->request.data, .private_data_len = flood->request.length,
		.responder_resources = flood->request.responder_resources,
		.retry_count = 3, .rnr_retry_count = 7, .qp_num = attempt->qp_num,
	};

	if (rdma_connect(attempt->id, &parameters))
		err(1, "rdma_connect");
}

static void rejected(struct attempt *attempt, const struct rdma_cm_event *event)
{
	const uint8_t *private = event->param.conn.private_data;
	/* 28 is "consumer defined". */
	bool explained = event->status == 28 && event->param.conn.private_data_len >= 4 && get(private + 2, 2);

	if (attempt->accepted) {
		outcomes.ended++;
		return;
	}
	outcomes.rejected++;
	if (!explained)
		outcomes.unexplained++;
}

/* Handles an event. Returns whether the request is of no use any more. */
static bool handle(const struct flood *flood, struct attempt *attempt, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(attempt->id, 5000))
			err(1, "rdma_resolve_route");
		return false;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		send_request(flood, attempt);
		return false;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		attempt->accepted = true;
		outcomes.accepted++;
		open_requests--;
		if (!flood->request.no_rtu && rdma_establish(attempt->id))
			err(1, "rdma_establish");
		return false;
	case RDMA_CM_EVENT_REJECTED:
		rejected(attempt, event);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return false;
	default:
		if (attempt->accepted)
			outcomes.ended++;
		else
			outcomes.failed++;
	}
	if (!attempt->accepted)
		open_requests--;
	return true;
}

static void next_event(const struct flood *flood)
{
	struct rdma_cm_event *event;
	struct attempt *attempt;
	bool over;

	if (rdma_get_cm_event(channel, &event))
		err(1, "rdma_get_cm_event");
	attempt = event->id->context;
	over = handle(flood, attempt, event);
	rdma_ack_cm_event(event);
	if (over)
		finish(attempt);
}

/* Whether there is an event within this time. */
static bool has_event(int milliseconds)
{
	struct pollfd source = { .fd = channel->fd, .events = POLLIN };

	if (poll(&source, 1, milliseconds) < 0)
		err(1, "poll");
	return source.revents;
}

void flood_run(const struct flood *flood)
{
	unsigned int begun = 0;

	channel = rdma_create_event_channel();
	if (!channel)
		err(1, "rdma_create_event_channel");
	while (begun < flood->count || open_requests) {
		if (begun < flood->count && open_requests < AT_A_TIME)
			begin(flood, begun++);
		else if (!has_event(patience))
			break;
		while (has_event(0))
			next_event(flood);
	}
	printf("flood accepted %u rejected %u failed %u ended %u\n", outcomes.accepted,
	       outcomes.rejected, outcomes.failed + open_requests, outcomes.ended);
	if (outcomes.unexplained)
		printf("flood unexplained %u\n", outcomes.unexplained);
}
