// SPDX-License-Identifier: GPL-2.0

#include <linux/version.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/*
 * What Rust reads of struct ib_device_attr, whose members change their types
 * from one kernel to the next.
 */
struct rrdma_device_attributes {
	u64 node_guid;
	u32 max_qp_wr;
	u32 max_cqe;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_qp_rd_atom;
	u32 max_fast_reg_page_list_len;
	u32 completion_vectors;
	int numa_node;
	bool memory_management_extensions;
};

__rrdma_helper void rrdma_helper_device_attributes(struct ib_device *device,
						   struct rrdma_device_attributes *out)
{
	const struct ib_device_attr *attrs = &device->attrs;

	out->node_guid = be64_to_cpu(device->node_guid);
	out->max_qp_wr = attrs->max_qp_wr;
	out->max_cqe = attrs->max_cqe;
	out->max_send_sge = attrs->max_send_sge;
	out->max_recv_sge = attrs->max_recv_sge;
	out->max_qp_rd_atom = attrs->max_qp_rd_atom;
	out->max_fast_reg_page_list_len = attrs->max_fast_reg_page_list_len;
	out->completion_vectors = device->num_comp_vectors;
	out->numa_node = ibdev_to_node(device);
	out->memory_management_extensions =
		attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS;
}

__rrdma_helper const char *rrdma_helper_ib_device_name(const struct ib_device *device)
{
	return dev_name(&device->dev);
}

/* The creating macros record KBUILD_MODNAME: `rdma res show` then names the user. */

__rrdma_helper struct ib_pd *rrdma_helper_ib_alloc_pd(struct ib_device *device, const char *owner)
{
	return __ib_alloc_pd(device, 0, owner);
}

__rrdma_helper void rrdma_helper_ib_dealloc_pd(struct ib_pd *pd)
{
	ib_dealloc_pd(pd);
}

__rrdma_helper struct ib_cq *rrdma_helper_ib_alloc_cq(struct ib_device *device, int entries,
						      int vector, enum ib_poll_context context,
						      const char *owner)
{
	return __ib_alloc_cq(device, NULL, entries, vector, context, owner);
}

/*
 * rdma_create_qp() would name itself as the user of the queue pair. The name
 * only labels the entry, which is not published under another one before.
 */
__rrdma_helper void rrdma_helper_ib_name_qp(struct ib_qp *qp, const char *owner)
{
	WRITE_ONCE(qp->res.kern_name, owner);
}

__rrdma_helper void rrdma_helper_ib_destroy_qp(struct ib_qp *qp)
{
	ib_destroy_qp(qp);
}

__rrdma_helper int rrdma_helper_ib_dereg_mr(struct ib_mr *mr)
{
	return ib_dereg_mr(mr);
}

/* A key that no earlier registration of this region used lately. */
__rrdma_helper void rrdma_helper_ib_advance_rkey(struct ib_mr *mr)
{
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
}

__rrdma_helper int rrdma_helper_ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
					     const struct ib_send_wr **bad_wr)
{
	return ib_post_send(qp, wr, bad_wr);
}

__rrdma_helper int rrdma_helper_ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
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

__rrdma_helper u64 rrdma_helper_sg_dma_address(struct scatterlist *sg)
{
	return sg_dma_address(sg);
}

__rrdma_helper u32 rrdma_helper_sg_dma_len(struct scatterlist *sg)
{
	return sg_dma_len(sg);
}

__rrdma_helper bool rrdma_helper_ib_port_active(struct ib_device *device, u32 port)
{
	enum ib_port_state state;

	return !ib_get_cached_port_state(device, port, &state) && state == IB_PORT_ACTIVE;
}
