// SPDX-License-Identifier: GPL-2.0
/*
 * An NVMe/RDMA target that violates the protocol in one way.
 *
 * It has one controller with namespaces in memory, and a discovery log. A STEP is a kind of command
 * of the host. A TWIST changes the replies to the commands of one STEP. In the random mode the
 * target changes replies to commands of any kind, by random twists; the same SEED gives the same
 * sequence of choices. The target prints a line for each command, so that a test can count them.
 *
 * The kernel objects of a queue are freed with its connection, because a host may connect thousands
 * of times. All others are freed when the process ends, by a signal.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/signalfd.h>

#include "hostile/target.h"

/* Time limit of a work request, in milliseconds. */
#define PATIENCE_MS	10000

/* The command line. A connection request has no command, so no twist rejects it; see fate(). */
static enum step twisted = OTHER;
static const struct twist *twist;
/* Commands of the twisted step that still get a correct reply: AFTER in the environment. */
static unsigned long spared;
/* Commands of the twisted step until the twist ends: FIRST in the environment; 0 for no end. */
static unsigned long first;
uint64_t value;
unsigned int offset;
unsigned int size;
const char *address;
const char *port;
bool tells;
unsigned long events;
unsigned long slow;
unsigned long granularity = 10;
unsigned long delay;
bool keeps_delay;
/* Version of the specification (VS). */
unsigned long version = 0x00010300;
unsigned long namespaces = 1;
unsigned long other;
uint64_t eui;
unsigned long protection;
bool shared;
unsigned int transition_time;
unsigned long logged = 6;
/* Queue size (CRQSIZE) that the target returns: ENTRIES in the environment. */
static unsigned long entries = MAX_ENTRIES;

/* The signalfd of SIGUSR1. */
static int signals;
static struct ibv_comp_channel *arrivals;
static struct queue *queues;

/* Verbs. */

static void take_event(struct rdma_event_channel *channel);

/* Waits for the event of a completion queue. After the removal of the device it never returns. */
static struct ibv_cq *next_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (!ibv_get_cq_event(channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		return cq;
	}
	if (errno != EIO)
		err(1, "ibv_get_cq_event");
	printf("- the device is gone\n");
	for (;;)
		pause();
}

/*
 * Waits for the completion of a work request. If the host is gone, soft-RoCE retransmits forever:
 * it takes a retry count of 7 as infinite. So this function also handles events of the connection
 * manager, and moves the queue pair to the error state after PATIENCE_MS without an event.
 */
static void await_departure(struct queue *queue)
{
	struct ibv_qp_attr over = { .qp_state = IBV_QPS_ERR };
	struct pollfd sources[] = {
		{ .fd = queue->departures->fd, .events = POLLIN },
		{ .fd = queue->id->channel->fd, .events = POLLIN },
	};

	for (;;) {
		if (poll(sources, ARRAY_SIZE(sources), PATIENCE_MS) < 0)
			err(1, "poll");
		if (sources[0].revents)
			return;
		if (sources[1].revents)
			take_event(queue->id->channel);
		else if (ibv_modify_qp(queue->id->qp, &over, IBV_QP_STATE))
			err(1, "ibv_modify_qp");
	}
}

/* Posts a work request and waits for its completion. After a failure all later ones fail. */
static bool transfer(struct queue *queue, struct ibv_send_wr *request)
{
	struct ibv_send_wr *bad;
	struct ibv_wc completion;

	request->send_flags = IBV_SEND_SIGNALED;
	if (ibv_req_notify_cq(queue->sends, 0))
		err(1, "ibv_req_notify_cq");
	if (ibv_post_send(queue->id->qp, request, &bad))
		return false;
	await_departure(queue);
	if (ibv_poll_cq(next_event(queue->departures), 1, &completion) != 1)
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

bool move(struct queue *queue, enum ibv_wr_opcode opcode, unsigned int length, uint64_t address,
	  uint32_t rkey)
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
	put(cqe + 8, reply->head, 2);
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

/* Posts the receive of a served command again, or keeps it while the queue is deaf. */
static void give_back_receive(struct queue *queue, unsigned int number)
{
	if (queue->deaf)
		queue->kept[queue->nr_kept++] = number;
	else
		post_receive(queue, number);
}

/* Ends the twist and posts the kept receives. The host's RNR retries deliver its commands. */
static void hear_again(void)
{
	struct queue *queue;

	for (queue = queues; queue; queue = queue->next) {
		queue->deaf = false;
		while (queue->nr_kept)
			post_receive(queue, queue->kept[--queue->nr_kept]);
	}
	twist = NULL;
}

/*
 * Handles SIGUSR1 if it is pending. Called before each command: a test may send the signal and
 * then a command, which must see its effect.
 */
static void take_signal(void)
{
	struct signalfd_siginfo signal;

	if (read(signals, &signal, sizeof(signal)) == sizeof(signal))
		hear_again();
	else if (errno != EAGAIN)
		err(1, "signalfd");
}

/* The queues. */

/*
 * Disconnects. Before RDMA_CM_EVENT_ESTABLISHED that sends no message; take_event() repeats it then.
 */
static void hang_up(struct queue *queue)
{
	queue->over = true;
	rdma_disconnect(queue->id);
}

void part_io_queues(void)
{
	struct queue *queue;

	for (queue = queues; queue; queue = queue->next) {
		if (!queue->qid || queue->ended)
			continue;
		hang_up(queue);
		while (!queue->ended)
			take_event(queue->id->channel);
	}
}

/* Waits for SIGUSR1, which stays pending, for at most `limit` milliseconds. */
static void await_signal(unsigned int limit)
{
	struct pollfd source = { .fd = signals, .events = POLLIN };

	if (poll(&source, 1, limit) < 0)
		err(1, "poll");
}

static void deliver(struct queue *queue, struct reply *reply)
{
	enum ibv_wr_opcode write = reply->immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	bool early = reply->data_length && !reply->data_last;
	unsigned int copy;

	if (reply->hang_up)
		hang_up(queue);
	if (reply->hang_up || reply->silent)
		return;
	if (early && !move(queue, write, reply->data_length, reply->address, reply->rkey))
		return;
	for (copy = 0; copy < reply->copies; copy++) {
		if (!respond(queue, reply))
			return;
		/* A key can be invalidated only once. */
		reply->invalidate = 0;
	}
	if (reply->data_last) {
		await_signal(reply->pause);
		move(queue, IBV_WR_RDMA_WRITE, reply->data_length, reply->address, reply->rkey);
	}
}

/* Reports the start of a firmware activation, with two replies to one request. */
void activate_firmware(void)
{
	struct queue *queue;

	for (queue = queues; queue; queue = queue->next) {
		struct reply reply = {
			/* Notice: Firmware Activation Starting, log page 3. */
			.result = 0x00030102,
			.cid = queue->event_cid, .length = CQE_SIZE, .copies = 2,
		};

		if (!queue->qid && !queue->ended)
			deliver(queue, &reply);
	}
}

void mute_queues(uint16_t controller)
{
	struct queue *queue;

	for (queue = queues; queue; queue = queue->next)
		queue->mute |= queue->controller == controller;
}

static void serve(struct queue *queue, const struct capsule *capsule)
{
	struct reply reply = {
		.sqe = capsule->sqe, .cid = get(capsule->sqe + 2, 2),
		.length = CQE_SIZE, .copies = 1,
	};
	enum step step = step_of(queue, capsule->sqe);

	if (queue->mute)
		return;
	printf("%u %s\n", queue->qid, step_names[step]);
	answer(queue, capsule, step, &reply);
	if (twist && step == twisted && !spared) {
		twist->apply(queue, &reply);
		if (first && !--first)
			twist = NULL;
	} else if (step == twisted && spared) {
		spared--;
	}
	break_at_random(queue, step, &reply);
	deliver(queue, &reply);
}

static void take_arrivals(void)
{
	struct capsule *capsule;
	struct ibv_wc completion;
	struct ibv_cq *cq = next_event(arrivals);
	struct queue *queue = cq->cq_context;

	if (ibv_req_notify_cq(cq, 0))
		err(1, "ibv_req_notify_cq");
	while (ibv_poll_cq(cq, 1, &completion) > 0) {
		/* Flushed, or a capsule that is too long: the connection has ended. */
		if (completion.status != IBV_WC_SUCCESS)
			continue;
		take_signal();
		capsule = &queue->memory->capsules[completion.wr_id];
		check_capsule(queue, capsule->sqe, completion.byte_len);
		serve(queue, capsule);
		give_back_receive(queue, completion.wr_id);
	}
}

/* Creates a queue. It is marked as ended if the host has already given up the connection. */
static struct queue *make_queue(struct rdma_cm_id *id, unsigned int qid)
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
	queue->next = queues;
	queues = queue;
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
		printf("- no queue pair: %s\n", strerror(errno));
		queue->ended = true;
		return queue;
	}
	queue->mr = ibv_reg_mr(id->pd, queue->memory, sizeof(*queue->memory),
			       IBV_ACCESS_LOCAL_WRITE);
	if (!queue->mr)
		err(1, "ibv_reg_mr");
	for (number = 0; number < RECEIVES; number++)
		post_receive(queue, number);
	return queue;
}

/*
 * Prints the commands that the target has received and not served. The connection may end first if the target
 * is late.
 */
static void print_unserved(struct queue *queue)
{
	struct ibv_wc completion;
	const uint8_t *sqe;

	while (!queue->mute && ibv_poll_cq(queue->receives, 1, &completion) > 0) {
		if (completion.status != IBV_WC_SUCCESS)
			continue;
		sqe = queue->memory->capsules[completion.wr_id].sqe;
		printf("%u %s\n", queue->qid, step_names[step_of(queue, sqe)]);
	}
}

static void free_queue(struct queue *queue)
{
	print_unserved(queue);
	/* Both are missing if the host gave up before the connection was accepted. */
	if (queue->id->qp)
		rdma_destroy_qp(queue->id);
	if (queue->mr && ibv_dereg_mr(queue->mr))
		err(1, "ibv_dereg_mr");
	if (ibv_destroy_cq(queue->sends) || ibv_destroy_cq(queue->receives))
		err(1, "ibv_destroy_cq");
	if (ibv_destroy_comp_channel(queue->departures))
		err(1, "ibv_destroy_comp_channel");
	if (rdma_destroy_id(queue->id))
		err(1, "rdma_destroy_id");
	free(queue->memory);
	free(queue);
}

/* Must not be called while a command is served or while an event is not acknowledged. */
static void free_ended_queues(void)
{
	struct queue **at = &queues;
	struct queue *queue;

	while ((queue = *at)) {
		if (queue->ended) {
			*at = queue->next;
			free_queue(queue);
		} else {
			at = &queue->next;
		}
	}
}

/* Rejects a connection with VALUE as status, and OFFSET bytes of private data. */
static void reject(struct rdma_cm_id *id)
{
	uint8_t data[4] = {};

	put(data + 2, value, 2);
	/* Fails if the host has given up the connection. */
	if (rdma_reject(id, data, offset))
		printf("- not rejected: %s\n", strerror(errno));
	rdma_destroy_id(id);
}

static void accept_queue(struct rdma_cm_id *id, const struct rdma_conn_param *request)
{
	uint8_t data[32] = {};
	struct rdma_conn_param parameters = {
		.private_data = data, .private_data_len = sizeof(data),
		.initiator_depth = 1, .rnr_retry_count = 7,
	};
	struct queue *queue;
	unsigned int qid;

	if (request->private_data_len < sizeof(data))
		accuse("%u bytes of private data", request->private_data_len);
	check_zeroes("the private data", request->private_data, 10, sizeof(data));
	qid = get((const uint8_t *)request->private_data + 2, 2);
	/* An association begins with its admin queue, and has no controller identifier (CNTLID) before. */
	if (!qid)
		check_zeroes("the private data of an admin queue", request->private_data, 8, 10);
	put(data + 2, entries, 2);
	queue = make_queue(id, qid);
	if (queue->ended || !rdma_accept(id, &parameters))
		return;
	printf("- not accepted: %s\n", strerror(errno));
	queue->ended = true;
}

static enum fate fate(void)
{
	if (twisted != REQUEST)
		return fate_at_random();
	if (spared) {
		spared--;
		return ACCEPTED;
	}
	return twist ? IGNORED : REJECTED;
}

static void take_request(struct rdma_cm_id *id, const struct rdma_conn_param *request)
{
	printf("- request\n");
	switch (fate()) {
	case ACCEPTED:
		return accept_queue(id, request);
	case REJECTED:
		return reject(id);
	case IGNORED:
		/* The host waits for a reply until its time-out. */
	}
}

static void take_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct queue *queue;

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
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		if (queue && queue->mute)
			break;
		/* Also flushes the posted work requests. */
		rdma_disconnect(event->id);
		/* An ignored request has no queue. */
		if (queue)
			queue->ended = true;
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

/* Blocks SIGUSR1 and opens a signalfd for it. */
static void expect_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		err(1, "sigprocmask");
	signals = signalfd(-1, &set, SFD_NONBLOCK);
	if (signals < 0)
		err(1, "signalfd");
}

static void usage(void)
{
	unsigned int n;

	fprintf(stderr, "usage: hostile_target ADDRESS PORT [STEP TWIST [VALUE [OFFSET SIZE]]]\n"
		"       hostile_target ADDRESS PORT random SEED\nsteps:");
	for (n = 0; n < STEPS; n++)
		fprintf(stderr, " %s", step_names[n]);
	fprintf(stderr, "\ntwists: reject (of request)");
	print_twists(stderr);
	fprintf(stderr, "\n");
	exit(2);
}

static void choose(const char *step, const char *name)
{
	unsigned int n;

	for (n = 0; n < STEPS && strcmp(step, step_names[n]); n++)
		;
	if (n == STEPS)
		usage();
	twisted = n;
	if (twisted == REQUEST && !strcmp(name, "reject"))
		return;
	twist = find_twist(name);
	if (!twist || (twisted == REQUEST && strcmp(name, "silent")))
		usage();
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
		begin_random(number(argv[4]));
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
	first = getenv("FIRST") ? number(getenv("FIRST")) : 0;
	granularity = getenv("GRANULARITY") ? number(getenv("GRANULARITY")) : granularity;
	slow = getenv("SLOW") ? number(getenv("SLOW")) : 0;
	delay = getenv("DELAY") ? number(getenv("DELAY")) : 0;
	version = getenv("VERSION") ? number(getenv("VERSION")) : version;
	namespaces = getenv("NAMESPACES") ? number(getenv("NAMESPACES")) : namespaces;
	other = getenv("OTHER") ? number(getenv("OTHER")) : 0;
	if (namespaces > IDENTIFY_SIZE / 4)
		usage();
	eui = getenv("EUI") ? number(getenv("EUI")) : 0;
	protection = getenv("PROTECTION") ? number(getenv("PROTECTION")) : 0;
	shared = getenv("SHARED");
	transition_time = getenv("ANATT") ? number(getenv("ANATT")) : 0;
	logged = getenv("LOGGED") ? number(getenv("LOGGED")) : logged;
	entries = getenv("ENTRIES") ? number(getenv("ENTRIES")) : entries;
	setvbuf(stdout, NULL, _IOLBF, 0);
	address = argv[1];
	port = argv[2];
	expect_signal();
	channel = listen_at_address();
	printf("- ready\n");
	for (;;) {
		struct pollfd sources[] = {
			{ .fd = channel->fd, .events = POLLIN },
			{ .fd = arrivals ? arrivals->fd : -1, .events = POLLIN },
			{ .fd = signals, .events = POLLIN },
		};

		if (poll(sources, ARRAY_SIZE(sources), -1) < 0)
			err(1, "poll");
		if (sources[2].revents)
			take_signal();
		if (sources[0].revents)
			take_event(channel);
		if (sources[1].revents)
			take_arrivals();
		free_ended_queues();
	}
}
