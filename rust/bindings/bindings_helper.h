/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Input of bindgen: headers that the bindings of the kernel crate lack (RDMA,
 * generic netlink), and headers of the block layer and workqueues, whose
 * constants they lack.
 */

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/ratelimit.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/mr_pool.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_cm_ib.h>
#include <rdma/rw.h>

#include "helpers.c"

/* Macros with casts, which bindgen does not evaluate. */
const unsigned int rrdma_BLK_MAX_BLOCK_SIZE = BLK_MAX_BLOCK_SIZE;
const blk_status_t rrdma_BLK_STS_NOTSUPP = BLK_STS_NOTSUPP;
const blk_status_t rrdma_BLK_STS_TIMEOUT = BLK_STS_TIMEOUT;
const blk_status_t rrdma_BLK_STS_NOSPC = BLK_STS_NOSPC;
const blk_status_t rrdma_BLK_STS_TRANSPORT = BLK_STS_TRANSPORT;
const blk_status_t rrdma_BLK_STS_TARGET = BLK_STS_TARGET;
const blk_status_t rrdma_BLK_STS_RESV_CONFLICT = BLK_STS_RESV_CONFLICT;
const blk_status_t rrdma_BLK_STS_MEDIUM = BLK_STS_MEDIUM;
const blk_status_t rrdma_BLK_STS_PROTECTION = BLK_STS_PROTECTION;
const blk_status_t rrdma_BLK_STS_RESOURCE = BLK_STS_RESOURCE;
const blk_status_t rrdma_BLK_STS_IOERR = BLK_STS_IOERR;
const blk_status_t rrdma_BLK_STS_OFFLINE = BLK_STS_OFFLINE;
const blk_status_t rrdma_BLK_STS_INVAL = BLK_STS_INVAL;
const blk_mode_t rrdma_BLK_OPEN_WRITE = BLK_OPEN_WRITE;
const req_flags_t rrdma_RQF_QUIET = RQF_QUIET;
const blk_features_t rrdma_BLK_FEAT_WRITE_CACHE = BLK_FEAT_WRITE_CACHE;
const blk_features_t rrdma_BLK_FEAT_FUA = BLK_FEAT_FUA;
const blk_features_t rrdma_BLK_FEAT_ROTATIONAL = BLK_FEAT_ROTATIONAL;
const blk_features_t rrdma_BLK_FEAT_ATOMIC_WRITES = BLK_FEAT_ATOMIC_WRITES;
