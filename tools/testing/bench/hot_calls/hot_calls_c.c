// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the calls of a C consumer on the I/O path. hot_calls.rs measures the
 * same calls with the rrdma crate. Both connect a queue pair with itself on one
 * device, so they differ only in the layer above the driver.
 *
 * Counts nanoseconds. In a VM that executes one instruction per nanosecond of its
 * clock (tools/testing/vm/run --icount), these are instructions.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#define OPERATIONS	64	/* of a kind, posted back to back */
#define ROUNDS		8
#define MESSAGE		64	/* bytes */
#define REGION		65536	/* bytes, 16 pages */
#define SETTLE_MS	200	/* longer than the device needs for all of them */

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device name");

static int gid_index;
module_param(gid_index, int, 0444);
MODULE_PARM_DESC(gid_index, "GID index of port 1; default 0");

struct operation {
	struct ib_cqe cqe;
	void *buffer;
	u64 address;
	struct ib_mr *mr;
	struct sg_table table;
	void *data;
};

struct bench {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct operation sends[OPERATIONS];
	struct operation receives[OPERATIONS];
	spinlock_t lock;	/* protects done and failed */
	struct operation *done[4 * OPERATIONS];
	unsigned int ended;
	bool failed;
};

enum call { POST_RECEIVE, POST_SEND, POLL, REGISTER, INVALIDATE, CALLS };

static const char * const call_names[CALLS] = {
	"post-receive", "post-send", "poll", "register", "invalidate",
};

static u64 nanoseconds[CALLS];
static struct bench *bench;

static void operation_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct operation *op = container_of(wc->wr_cqe, struct operation, cqe);
	struct bench *b = wc->qp->qp_context;
	unsigned long flags;

	spin_lock_irqsave(&b->lock, flags);
	if (wc->status != IB_WC_SUCCESS)
		b->failed = true;
	if (b->ended < ARRAY_SIZE(b->done))
		b->done[b->ended++] = op;
	spin_unlock_irqrestore(&b->lock, flags);
}

static int post_receive(struct bench *b, struct operation *op)
{
	struct ib_sge sge = {
		.addr = op->address, .length = MESSAGE, .lkey = b->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &op->cqe, .sg_list = &sge, .num_sge = 1 };

	op->cqe.done = operation_done;
	return ib_post_recv(b->qp, &wr, NULL);
}

static int post_send(struct bench *b, struct operation *op)
{
	struct ib_sge sge = {
		.addr = op->address, .length = MESSAGE, .lkey = b->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};

	op->cqe.done = operation_done;
	return ib_post_send(b->qp, &wr, NULL);
}

/* As in nvme_rdma_map_sg_fr() and nvme_rdma_post_send(). */
static int post_registration(struct bench *b, struct operation *op)
{
	struct ib_sge sge = {
		.addr = op->address, .length = MESSAGE, .lkey = b->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};
	struct ib_reg_wr reg = {};
	int n;

	n = ib_map_mr_sg(op->mr, op->table.sgl, op->table.nents, NULL, SZ_4K);
	if (n < op->table.nents)
		return n < 0 ? n : -EINVAL;
	ib_update_fast_reg_key(op->mr, ib_inc_rkey(op->mr->rkey));
	op->cqe.done = operation_done;
	reg.wr.opcode = IB_WR_REG_MR;
	reg.wr.wr_cqe = &op->cqe;
	reg.wr.next = &wr;
	reg.mr = op->mr;
	reg.key = op->mr->rkey;
	reg.access = IB_ACCESS_REMOTE_READ;
	return ib_post_send(b->qp, &reg.wr, NULL);
}

static int post_invalidation(struct bench *b, struct operation *op)
{
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe, .opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED, .ex.invalidate_rkey = op->mr->rkey,
	};

	op->cqe.done = operation_done;
	return ib_post_send(b->qp, &wr, NULL);
}

/* Posts all operations in ops. Interrupts are off, so that only posting is counted. */
static int post_all(struct bench *b, struct operation *ops, enum call call,
		    int (*post)(struct bench *b, struct operation *op))
{
	unsigned long flags;
	ktime_t start;
	int i, ret = 0;

	spin_lock_irqsave(&b->lock, flags);
	start = ktime_get();
	for (i = 0; i < OPERATIONS && !ret; i++)
		ret = post(b, &ops[i]);
	nanoseconds[call] += ktime_to_ns(ktime_sub(ktime_get(), start));
	spin_unlock_irqrestore(&b->lock, flags);
	return ret;
}

/* Handles completions. Exactly `expected` operations must have completed. */
static int settle(struct bench *b, unsigned int expected, bool count)
{
	ktime_t start;

	msleep(SETTLE_MS);
	b->ended = 0;
	start = ktime_get();
	ib_process_cq_direct(b->cq, -1);
	if (count)
		nanoseconds[POLL] += ktime_to_ns(ktime_sub(ktime_get(), start));
	if (b->ended != expected || b->failed) {
		pr_err("%u of %u completed%s\n", b->ended, expected, b->failed ? ", failures" : "");
		return -EIO;
	}
	return 0;
}

static int run_round(struct bench *b)
{
	u64 unused;
	int ret;

	ret = post_all(b, b->receives, POST_RECEIVE, post_receive);
	if (!ret)
		ret = post_all(b, b->sends, POST_SEND, post_send);
	if (!ret)
		ret = settle(b, 2 * OPERATIONS, true);
	if (ret)
		return ret;

	unused = nanoseconds[POST_RECEIVE];
	ret = post_all(b, b->receives, POST_RECEIVE, post_receive);
	nanoseconds[POST_RECEIVE] = unused;
	if (!ret)
		ret = post_all(b, b->sends, REGISTER, post_registration);
	if (!ret)
		ret = settle(b, 2 * OPERATIONS, false);
	if (!ret)
		ret = post_all(b, b->sends, INVALIDATE, post_invalidation);
	if (!ret)
		ret = settle(b, OPERATIONS, false);
	return ret;
}

static void report(void)
{
	enum call call;

	for (call = 0; call < CALLS; call++) {
		/* A poll is counted as two: one for the send and one for the receive. */
		u64 calls = (u64)ROUNDS * OPERATIONS * (call == POLL ? 2 : 1);

		pr_info("%s %llu\n", call_names[call], div64_u64(nanoseconds[call], calls));
	}
}

static int operation_init(struct bench *b, struct operation *op, enum dma_data_direction dir)
{
	op->buffer = kzalloc(MESSAGE, GFP_KERNEL);
	if (!op->buffer)
		return -ENOMEM;
	op->address = ib_dma_map_single(b->dev, op->buffer, MESSAGE, dir);
	return ib_dma_mapping_error(b->dev, op->address);
}

static int region_init(struct bench *b, struct operation *op)
{
	op->data = kzalloc(REGION, GFP_KERNEL);
	if (!op->data || sg_alloc_table(&op->table, 1, GFP_KERNEL))
		return -ENOMEM;
	sg_set_buf(op->table.sgl, op->data, REGION);
	if (!ib_dma_map_sg(b->dev, op->table.sgl, 1, DMA_TO_DEVICE))
		return -EIO;
	op->mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, REGION / SZ_4K);
	return PTR_ERR_OR_ZERO(op->mr);
}

static void operation_exit(struct bench *b, struct operation *op, enum dma_data_direction dir)
{
	if (!IS_ERR_OR_NULL(op->mr))
		ib_dereg_mr(op->mr);
	if (op->table.sgl) {
		ib_dma_unmap_sg(b->dev, op->table.sgl, 1, DMA_TO_DEVICE);
		sg_free_table(&op->table);
	}
	kfree(op->data);
	if (op->buffer)
		ib_dma_unmap_single(b->dev, op->address, MESSAGE, dir);
	kfree(op->buffer);
}

/* Moves the queue pair from RESET to RTS, with itself as the peer. */
static int connect_to_self(struct bench *b)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	const struct ib_gid_attr *gid;
	union ib_gid self;
	int ret;

	ret = ib_modify_qp(b->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;

	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTR, .path_mtu = IB_MTU_1024, .dest_qp_num = b->qp->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
	};
	gid = rdma_get_gid_attr(b->dev, 1, gid_index);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	self = gid->gid;
	attr.ah_attr.type = rdma_ah_find_type(b->dev, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, &self, 0, gid_index, 64, 0);
	ret = rdma_read_gid_l2_fields(gid, NULL, attr.ah_attr.roce.dmac);
	if (!ret)
		ret = ib_modify_qp(b->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
				   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
				   IB_QP_MIN_RNR_TIMER);
	rdma_put_gid_attr(gid);
	if (ret)
		return ret;

	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	return ib_modify_qp(b->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static void bench_exit(struct bench *b)
{
	int i;

	if (!IS_ERR_OR_NULL(b->qp)) {
		ib_drain_qp(b->qp);
		ib_destroy_qp(b->qp);
	}
	for (i = 0; i < OPERATIONS; i++) {
		operation_exit(b, &b->sends[i], DMA_TO_DEVICE);
		operation_exit(b, &b->receives[i], DMA_FROM_DEVICE);
	}
	if (!IS_ERR_OR_NULL(b->cq))
		ib_free_cq(b->cq);
	if (!IS_ERR_OR_NULL(b->pd))
		ib_dealloc_pd(b->pd);
}

static int bench_init(struct bench *b)
{
	struct ib_qp_init_attr attr = {
		.qp_context = b, .qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = 2 * OPERATIONS + 1, .max_recv_wr = OPERATIONS + 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	int i, ret;

	spin_lock_init(&b->lock);
	b->pd = ib_alloc_pd(b->dev, 0);
	if (IS_ERR(b->pd))
		return PTR_ERR(b->pd);
	b->cq = ib_alloc_cq(b->dev, NULL, 4 * OPERATIONS, 0, IB_POLL_DIRECT);
	if (IS_ERR(b->cq))
		return PTR_ERR(b->cq);
	attr.send_cq = b->cq;
	attr.recv_cq = b->cq;
	b->qp = ib_create_qp(b->pd, &attr);
	if (IS_ERR(b->qp))
		return PTR_ERR(b->qp);
	for (i = 0; i < OPERATIONS; i++) {
		ret = operation_init(b, &b->sends[i], DMA_TO_DEVICE);
		if (!ret)
			ret = operation_init(b, &b->receives[i], DMA_FROM_DEVICE);
		if (!ret)
			ret = region_init(b, &b->sends[i]);
		if (ret)
			return ret;
	}
	return connect_to_self(b);
}

static int add_device(struct ib_device *dev)
{
	int i, ret;

	if (bench->dev || strcmp(dev_name(&dev->dev), device))
		return -EOPNOTSUPP;
	bench->dev = dev;
	ret = bench_init(bench);
	/* Not counted: the first round warms up caches, translations and memory pools. */
	if (!ret)
		ret = run_round(bench);
	memset(nanoseconds, 0, sizeof(nanoseconds));
	for (i = 0; i < ROUNDS && !ret; i++)
		ret = run_round(bench);
	if (ret)
		pr_err("failed: %d\n", ret);
	else
		report();
	bench_exit(bench);
	return -EOPNOTSUPP;
}

static struct ib_client client = { .name = "bench_hot_calls_c", .add = add_device };

static int __init hot_calls_init(void)
{
	int ret;

	bench = kzalloc(sizeof(*bench), GFP_KERNEL);
	if (!bench)
		return -ENOMEM;
	ret = ib_register_client(&client);
	if (!ret)
		ib_unregister_client(&client);
	kfree(bench);
	return ret;
}
module_init(hot_calls_init);

/* Everything is done at load. */
static void __exit hot_calls_exit(void)
{
}
module_exit(hot_calls_exit);

MODULE_DESCRIPTION("Benchmark: calls of verbs on the I/O path, in C");
MODULE_LICENSE("GPL");
