// SPDX-License-Identifier: GPL-2.0

#include <linux/irqflags.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/* Protects registered_event_handler of queue pairs. */
static DEFINE_RAW_SPINLOCK(rrdma_qp_events);

struct rrdma_device_capabilities {
	u64 device;
	u64 kernel;
};

/*
 * The part of struct ib_device_attr that Rust reads. The types of its members
 * differ between kernels.
 */
struct rrdma_device_attributes {
	u64 node_guid;
	u64 sys_image_guid;
	u32 node_type;
	u32 vendor_id;
	u32 vendor_part_id;
	u32 hardware_version;
	u32 ports;
	u32 completion_vectors;
	int numa_node;
	struct rrdma_device_capabilities capabilities;
	enum ib_atomic_cap atomics;
	enum ib_atomic_cap masked_atomics;
	u32 max_qp;
	u32 max_qp_wr;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_sge_rd;
	u32 max_sgl_rd;
	u32 max_qp_rd_atom;
	u32 max_qp_init_rd_atom;
	u32 max_res_rd_atom;
	u8 local_ca_ack_delay;
	u32 max_cq;
	u32 max_cqe;
	u16 max_cq_moderation_count;
	u16 max_cq_moderation_period;
	u32 max_srq;
	u32 max_srq_wr;
	u32 max_srq_sge;
	u32 max_pd;
	u32 max_mr;
	u32 max_mw;
	u64 max_mr_size;
	u64 page_size_cap;
	u32 max_fast_reg_page_list_len;
	u32 max_ah;
	u16 max_pkeys;
	u32 max_mcast_grp;
	u32 max_mcast_qp_attach;
	u32 max_total_mcast_qp_attach;
	u32 max_ee;
	u32 max_ee_rd_atom;
	u32 max_ee_init_rd_atom;
	u32 max_rdd;
	u32 max_raw_ipv6_qp;
	u32 max_raw_ethy_qp;
};

__rrdma_helper unsigned long rrdma_helper_lock_qp_events(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&rrdma_qp_events, flags);
	return flags;
}

/* Leaves interrupts disabled. */
__rrdma_helper void rrdma_helper_unlock_qp_events(void)
{
	raw_spin_unlock(&rrdma_qp_events);
}

__rrdma_helper void rrdma_helper_local_irq_restore(unsigned long flags)
{
	local_irq_restore(flags);
}

__rrdma_helper void rrdma_helper_device_attributes(struct ib_device *device,
						   struct rrdma_device_attributes *out)
{
	const struct ib_device_attr *attrs = &device->attrs;

	out->node_guid = be64_to_cpu(device->node_guid);
	out->sys_image_guid = be64_to_cpu(attrs->sys_image_guid);
	out->node_type = device->node_type;
	out->vendor_id = attrs->vendor_id;
	out->vendor_part_id = attrs->vendor_part_id;
	out->hardware_version = attrs->hw_ver;
	out->ports = device->phys_port_cnt;
	out->completion_vectors = device->num_comp_vectors;
	out->numa_node = ibdev_to_node(device);
	out->capabilities.device = attrs->device_cap_flags;
	out->capabilities.kernel = attrs->kernel_cap_flags;
	out->atomics = attrs->atomic_cap;
	out->masked_atomics = attrs->masked_atomic_cap;
	out->max_qp = attrs->max_qp;
	out->max_qp_wr = attrs->max_qp_wr;
	out->max_send_sge = attrs->max_send_sge;
	out->max_recv_sge = attrs->max_recv_sge;
	out->max_sge_rd = attrs->max_sge_rd;
	out->max_sgl_rd = attrs->max_sgl_rd;
	out->max_qp_rd_atom = attrs->max_qp_rd_atom;
	out->max_qp_init_rd_atom = attrs->max_qp_init_rd_atom;
	out->max_res_rd_atom = attrs->max_res_rd_atom;
	out->local_ca_ack_delay = attrs->local_ca_ack_delay;
	out->max_cq = attrs->max_cq;
	out->max_cqe = attrs->max_cqe;
	out->max_cq_moderation_count = attrs->cq_caps.max_cq_moderation_count;
	out->max_cq_moderation_period = attrs->cq_caps.max_cq_moderation_period;
	out->max_srq = attrs->max_srq;
	out->max_srq_wr = attrs->max_srq_wr;
	out->max_srq_sge = attrs->max_srq_sge;
	out->max_pd = attrs->max_pd;
	out->max_mr = attrs->max_mr;
	out->max_mw = attrs->max_mw;
	out->max_mr_size = attrs->max_mr_size;
	out->page_size_cap = attrs->page_size_cap;
	out->max_fast_reg_page_list_len = attrs->max_fast_reg_page_list_len;
	out->max_ah = attrs->max_ah;
	out->max_pkeys = attrs->max_pkeys;
	out->max_mcast_grp = attrs->max_mcast_grp;
	out->max_mcast_qp_attach = attrs->max_mcast_qp_attach;
	out->max_total_mcast_qp_attach = attrs->max_total_mcast_qp_attach;
	out->max_ee = attrs->max_ee;
	out->max_ee_rd_atom = attrs->max_ee_rd_atom;
	out->max_ee_init_rd_atom = attrs->max_ee_init_rd_atom;
	out->max_rdd = attrs->max_rdd;
	out->max_raw_ipv6_qp = attrs->max_raw_ipv6_qp;
	out->max_raw_ethy_qp = attrs->max_raw_ethy_qp;
}

/* Not dev_name(): renaming the device frees that string. */
__rrdma_helper const char *rrdma_helper_ib_device_name(const struct ib_device *device)
{
	return device->name;
}

/* Index and name of a network device; the index is 0 if there is no device. */
struct rrdma_netdev {
	int index;
	char name[IFNAMSIZ];
};

static void rrdma_copy_netdev(const struct net_device *netdev, struct rrdma_netdev *out)
{
	out->index = netdev->ifindex;
	strscpy(out->name, netdev->name);
}

__rrdma_helper void rrdma_helper_port_netdev(struct ib_device *device, u32 port,
					     struct rrdma_netdev *out)
{
	struct net_device *netdev = ib_device_get_netdev(device, port);

	if (netdev)
		rrdma_copy_netdev(netdev, out);
	dev_put(netdev);
}

__rrdma_helper void rrdma_helper_gid_netdev(const struct ib_gid_attr *attr,
					    struct rrdma_netdev *out)
{
	struct net_device *netdev;

	rcu_read_lock();
	netdev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(netdev))
		rrdma_copy_netdev(netdev, out);
	rcu_read_unlock();
}

/* Counters of a port, or of the device if the port is 0. */
__rrdma_helper struct rdma_hw_stats *rrdma_helper_alloc_hw_stats(struct ib_device *device, u32 port)
{
	const struct ib_device_ops *ops = &device->ops;
	struct rdma_hw_stats *stats;

	if (!ops->get_hw_stats)
		return ERR_PTR(-EOPNOTSUPP);
	if (port ? !ops->alloc_hw_port_stats : !ops->alloc_hw_device_stats)
		return ERR_PTR(-EOPNOTSUPP);
	stats = port ? ops->alloc_hw_port_stats(device, port) : ops->alloc_hw_device_stats(device);
	return stats ?: ERR_PTR(-ENOMEM);
}

__rrdma_helper int rrdma_helper_update_hw_stats(struct ib_device *device,
						struct rdma_hw_stats *stats, u32 port)
{
	int ret = device->ops.get_hw_stats(device, stats, port, stats->num_counters);

	return ret < 0 ? ret : 0;
}

/* Name and value of a counter; NULL if it is optional and not enabled. */
__rrdma_helper const char *rrdma_helper_hw_stats_counter(const struct rdma_hw_stats *stats,
							 int index, u64 *value)
{
	if (test_bit(index, stats->is_disabled))
		return NULL;
	*value = stats->value[index];
	return stats->descs[index].name;
}

__rrdma_helper u32 rrdma_helper_rdma_start_port(const struct ib_device *device)
{
	return rdma_start_port(device);
}

__rrdma_helper u32 rrdma_helper_rdma_end_port(const struct ib_device *device)
{
	return rdma_end_port(device);
}

/*
 * The macros that create objects record KBUILD_MODNAME as the owner, which
 * `rdma res show` prints. The functions below record the owner of the caller.
 */

__rrdma_helper struct ib_pd *rrdma_helper_ib_alloc_pd(struct ib_device *device, const char *owner)
{
	return __ib_alloc_pd(device, 0, owner);
}

__rrdma_helper void rrdma_helper_ib_dealloc_pd(struct ib_pd *pd)
{
	ib_dealloc_pd(pd);
}

/*
 * The event handler is set after the queue is created. No event is missed,
 * because nothing is posted before this returns.
 */
__rrdma_helper struct ib_cq *
rrdma_helper_ib_alloc_cq(struct ib_device *device, void *context, int entries, int vector,
			 enum ib_poll_context poll,
			 void (*event_handler)(struct ib_event *, void *), const char *owner)
{
	struct ib_cq *cq = __ib_alloc_cq(device, context, entries, vector, poll, owner);

	if (!IS_ERR(cq))
		cq->event_handler = event_handler;
	return cq;
}

/*
 * The caller polls the queue. With IB_POLL_DIRECT, ib_drain_qp() polls it, too,
 * as for other queues without a poller in the kernel.
 */
__rrdma_helper struct ib_cq *
rrdma_helper_ib_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
			  void (*event_handler)(struct ib_event *, void *), void *context,
			  int entries, int vector, const char *owner)
{
	struct ib_cq_init_attr attr = { .cqe = entries, .comp_vector = vector };
	struct ib_cq *cq;

	cq = __ib_create_cq(device, comp_handler, event_handler, context, &attr, owner);
	if (!IS_ERR(cq))
		cq->poll_ctx = IB_POLL_DIRECT;
	return cq;
}

__rrdma_helper void rrdma_helper_ib_destroy_cq(struct ib_cq *cq)
{
	ib_destroy_cq(cq);
}

__rrdma_helper int rrdma_helper_ib_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return ib_req_notify_cq(cq, flags);
}

/*
 * rdma_create_qp() records its own module as the owner of the queue pair, which
 * `rdma res show` may print until this call.
 */
__rrdma_helper void rrdma_helper_ib_name_qp(struct ib_qp *qp, const char *owner)
{
	WRITE_ONCE(qp->res.kern_name, owner);
}

__rrdma_helper struct ib_srq *rrdma_helper_ib_create_srq(struct ib_pd *pd,
							 struct ib_srq_init_attr *attr)
{
	return ib_create_srq(pd, attr);
}

__rrdma_helper int rrdma_helper_ib_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr)
{
	return ib_post_srq_recv(srq, wr, NULL);
}

/*
 * Always sleepable, because some drivers cannot destroy a handle in atomic
 * context: rxe takes a lock that it holds with softirqs enabled while it
 * creates a handle.
 */
__rrdma_helper void rrdma_helper_rdma_destroy_ah(struct ib_ah *ah)
{
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

__rrdma_helper int rrdma_helper_ib_dereg_mr(struct ib_mr *mr)
{
	return ib_dereg_mr(mr);
}

/*
 * Runs the completion handler in process context, as a drain does. Handlers of
 * IB_POLL_SOFTIRQ queues rely on softirqs being disabled.
 */
__rrdma_helper void rrdma_helper_ib_complete_flushed(struct ib_qp *qp, struct ib_cqe *cqe)
{
	struct ib_wc wc = {
		.wr_cqe = cqe,
		.status = IB_WC_WR_FLUSH_ERR,
		.qp = qp,
	};
	bool softirq = qp->send_cq->poll_ctx == IB_POLL_SOFTIRQ;

	if (softirq)
		local_bh_disable();
	cqe->done(qp->send_cq, &wc);
	if (softirq)
		local_bh_enable();
}

__rrdma_helper bool rrdma_helper_ib_dma_pci_p2p_dma_supported(struct ib_device *device)
{
	return ib_dma_pci_p2p_dma_supported(device);
}

__rrdma_helper u64 rrdma_helper_ib_dma_map_single(struct ib_device *device, void *address,
						  size_t length, enum dma_data_direction direction)
{
	return ib_dma_map_single(device, address, length, direction);
}

__rrdma_helper void rrdma_helper_ib_dma_unmap_single(struct ib_device *device, u64 address,
						     size_t length,
						     enum dma_data_direction direction)
{
	ib_dma_unmap_single(device, address, length, direction);
}

__rrdma_helper int rrdma_helper_ib_dma_mapping_error(struct ib_device *device, u64 address)
{
	return ib_dma_mapping_error(device, address);
}

__rrdma_helper void rrdma_helper_ib_dma_sync_single_for_cpu(struct ib_device *device, u64 address,
							    size_t length,
							    enum dma_data_direction direction)
{
	ib_dma_sync_single_for_cpu(device, address, length, direction);
}

__rrdma_helper void rrdma_helper_ib_dma_sync_single_for_device(struct ib_device *device,
							       u64 address, size_t length,
							       enum dma_data_direction direction)
{
	ib_dma_sync_single_for_device(device, address, length, direction);
}

__rrdma_helper int rrdma_helper_ib_dma_map_sg(struct ib_device *device, struct scatterlist *sg,
					      int entries, enum dma_data_direction direction)
{
	return ib_dma_map_sg(device, sg, entries, direction);
}

__rrdma_helper void rrdma_helper_ib_dma_unmap_sg(struct ib_device *device, struct scatterlist *sg,
						 int entries, enum dma_data_direction direction)
{
	ib_dma_unmap_sg(device, sg, entries, direction);
}

/*
 * The address that the reply to a connection request goes to: a GID, a LID without a GRH, or an IP address. All
 * have 16 bytes.
 */
__rrdma_helper void rrdma_helper_reply_address(const struct rdma_cm_id *id, u8 *address)
{
	const struct sockaddr *peer = (const struct sockaddr *)&id->route.addr.dst_addr;
	const struct sa_path_rec *path = id->route.path_rec;
	struct in6_addr *ip = (struct in6_addr *)address;
	__be32 lid;

	if (path && !sa_path_is_roce((struct sa_path_rec *)path) && path->hop_limit <= 1) {
		lid = sa_path_get_dlid((struct sa_path_rec *)path);
		memset(address, 0, sizeof(*ip));
		memcpy(address + 12, &lid, sizeof(lid));
	} else if (path) {
		memcpy(address, path->dgid.raw, sizeof(*ip));
	} else if (peer->sa_family == AF_INET) {
		ipv6_addr_set_v4mapped(((const struct sockaddr_in *)peer)->sin_addr.s_addr, ip);
	} else {
		*ip = ((const struct sockaddr_in6 *)peer)->sin6_addr;
	}
}
