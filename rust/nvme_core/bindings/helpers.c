// SPDX-License-Identifier: GPL-2.0
/*
 * Wrappers of static inline functions and macros of nvme-core, nvme-fabrics and
 * workqueues, which Rust cannot call. bindgen reads this file, too. It skips
 * inline functions, so helpers have a marker instead of "static inline".
 */

#include <linux/blk-mq.h>
#include <linux/module.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "nvme.h"
#include "fabrics.h"

#define __nvme_core_helper

/* Macros with casts, which bindgen does not evaluate. */
const u16 nvme_core_const_AQ_TAGS = NVME_AQ_MQ_TAG_DEPTH;
const u16 nvme_core_const_AQ_DEPTH = NVME_AQ_DEPTH;
const blk_status_t nvme_core_const_STS_OK = BLK_STS_OK;
const blk_status_t nvme_core_const_STS_RESOURCE = BLK_STS_RESOURCE;
const req_flags_t nvme_core_const_SPECIAL_PAYLOAD = RQF_SPECIAL_PAYLOAD;
const blk_opf_t nvme_core_const_MULTIPATH = REQ_NVME_MPATH;
const unsigned long nvme_core_const_SKIP_CID_GEN = NVME_QUIRK_SKIP_CID_GEN;

/* Private data of a request: the core's part must come first. */
struct nvme_core_pdu {
	struct nvme_request req;
	struct nvme_command cmd;
};

const unsigned int nvme_core_const_PDU_SIZE = sizeof(struct nvme_core_pdu);

__nvme_core_helper void
nvme_core_helper_init_request(struct request *rq, struct nvme_ctrl *ctrl)
{
	struct nvme_core_pdu *pdu = blk_mq_rq_to_pdu(rq);

	pdu->req.ctrl = ctrl;
	pdu->req.cmd = &pdu->cmd;
}

__nvme_core_helper bool
nvme_core_helper_check_ready(struct nvme_ctrl *ctrl, struct request *rq,
			     bool queue_live)
{
	return nvme_check_ready(ctrl, rq, queue_live);
}

__nvme_core_helper void nvme_core_helper_start_request(struct request *rq)
{
	nvme_start_request(rq);
}

__nvme_core_helper void
nvme_core_helper_end_request(struct request *rq, u16 status, u64 result)
{
	struct nvme_request *req = nvme_req(rq);

	if (!(req->ctrl->quirks & NVME_QUIRK_SKIP_CID_GEN))
		req->genctr++;
	req->status = status & 0x7fff;
	req->result.u64 = cpu_to_le64(result);
	nvme_should_fail(rq);
	/*
	 * Unlike nvme_try_complete_req(), this fakes no time-out: who calls it
	 * has given up the request, so nobody would end it.
	 */
	if (!blk_mq_complete_request_remote(rq))
		nvme_complete_rq(rq);
}

__nvme_core_helper bool nvme_core_helper_is_keep_alive(struct request *rq)
{
	return nvme_req(rq)->cmd->common.opcode == nvme_admin_keep_alive;
}

/* nvme_stop_keep_alive() cancels it, but not if there is no keep-alive. */
__nvme_core_helper void
nvme_core_helper_queue_keep_alive(struct nvme_ctrl *ctrl)
{
	if (ctrl->kato)
		queue_delayed_work(nvme_wq, &ctrl->ka_work, ctrl->kato * HZ / 2);
}

__nvme_core_helper void
nvme_core_helper_cancel_request(struct request *rq)
{
	nvme_req(rq)->status = NVME_SC_HOST_ABORTED_CMD;
	nvme_req(rq)->flags |= NVME_REQ_CANCELLED;
	blk_mq_complete_request(rq);
}

__nvme_core_helper void
nvme_core_helper_requeue_request(struct request *rq)
{
	nvme_cleanup_cmd(rq);
	blk_mq_requeue_request(rq, true);
}

__nvme_core_helper void nvme_core_helper_cleanup_cmd(struct request *rq)
{
	nvme_cleanup_cmd(rq);
}

/*
 * As nvme_host_path_error(). blk_mq_end_request() would not undo what nvme-core
 * counted when the request was started.
 */
__nvme_core_helper void
nvme_core_helper_fail_request(struct request *rq)
{
	nvme_req(rq)->status = NVME_SC_INTERNAL | NVME_STATUS_DNR;
	blk_mq_set_request_complete(rq);
	nvme_complete_rq(rq);
}

__nvme_core_helper void nvme_core_helper_path_error(struct request *rq)
{
	nvme_host_path_error(rq);
}

__nvme_core_helper bool nvme_core_helper_is_in_flight(struct request *rq)
{
	return blk_mq_rq_state(rq) == MQ_RQ_IN_FLIGHT;
}

/* Whether a request is in flight, and its timer has run out since it was sent. */
__nvme_core_helper bool nvme_core_helper_is_expired(struct request *rq)
{
	return blk_mq_rq_state(rq) == MQ_RQ_IN_FLIGHT &&
	       time_after_eq(jiffies, READ_ONCE(rq->deadline));
}

/* The line that scripts look for: that of nvme-rdma. */
__nvme_core_helper void
nvme_core_helper_log_timeout(struct nvme_ctrl *ctrl, struct request *rq, u16 qid)
{
	struct nvme_command *cmd = nvme_req(rq)->cmd;

	dev_warn(ctrl->device, "I/O tag %d (%04x) opcode %#x (%s) QID %d timeout\n",
		 rq->tag, nvme_cid(rq), cmd->common.opcode,
		 nvme_fabrics_opcode_str(qid, cmd), qid);
}

__nvme_core_helper void
nvme_core_helper_complete_async_event(struct nvme_ctrl *ctrl, u16 status, u64 result)
{
	union nvme_result value = { .u64 = cpu_to_le64(result) };

	nvme_complete_async_event(ctrl, cpu_to_le16(status << 1), &value);
}

__nvme_core_helper enum nvme_ctrl_state
nvme_core_helper_ctrl_state(struct nvme_ctrl *ctrl)
{
	return nvme_ctrl_state(ctrl);
}

/* "fn" is called for each change of the state, with locks held. */
__nvme_core_helper void
nvme_core_helper_watch_state(struct nvme_ctrl *ctrl, struct wait_queue_entry *entry,
			     wait_queue_func_t fn)
{
	init_waitqueue_func_entry(entry, fn);
	add_wait_queue(&ctrl->state_wq, entry);
}

__nvme_core_helper void
nvme_core_helper_unwatch_state(struct nvme_ctrl *ctrl, struct wait_queue_entry *entry)
{
	remove_wait_queue(&ctrl->state_wq, entry);
}

__nvme_core_helper void nvme_core_helper_put_ctrl(struct nvme_ctrl *ctrl)
{
	nvme_put_ctrl(ctrl);
}

__nvme_core_helper const char *
nvme_core_helper_ctrl_subsysnqn(struct nvme_ctrl *ctrl)
{
	return nvmf_ctrl_subsysnqn(ctrl);
}

__nvme_core_helper unsigned int nvme_core_helper_online_cpus(void)
{
	return num_online_cpus();
}

__nvme_core_helper unsigned int nvme_core_helper_possible_cpus(void)
{
	return num_possible_cpus();
}

__nvme_core_helper unsigned long
nvme_core_helper_get_virt_boundary(struct nvme_ctrl *ctrl, bool is_admin)
{
	return nvme_get_virt_boundary(ctrl, is_admin);
}

__nvme_core_helper void
nvme_core_helper_init_works(struct work_struct *reset, work_func_t reset_fn,
			    struct work_struct *recovery, work_func_t recovery_fn,
			    struct work_struct *abort, work_func_t abort_fn,
			    struct delayed_work *reconnect, work_func_t reconnect_fn)
{
	INIT_WORK(reset, reset_fn);
	INIT_WORK(recovery, recovery_fn);
	INIT_WORK(abort, abort_fn);
	INIT_DELAYED_WORK(reconnect, reconnect_fn);
}

/*
 * Stops what nvme_stop_ctrl() has stopped, too. Until the queues are
 * disconnected, an event, the end of a scan or an ANA log may start it again.
 * The functions do nothing for a controller that is not live.
 */
__nvme_core_helper void
nvme_core_helper_cancel_core_works(struct nvme_ctrl *ctrl)
{
	cancel_work_sync(&ctrl->scan_work);
	cancel_work_sync(&ctrl->async_event_work);
#ifdef CONFIG_NVME_MULTIPATH
	timer_delete_sync(&ctrl->anatt_timer);
	cancel_work_sync(&ctrl->ana_work);
#endif
}

__nvme_core_helper void
nvme_core_helper_queue_reset_work(struct work_struct *work)
{
	queue_work(nvme_reset_wq, work);
}

__nvme_core_helper void
nvme_core_helper_queue_reconnect(struct delayed_work *work, unsigned int seconds)
{
	queue_delayed_work(nvme_wq, work, seconds * HZ);
}

/* Inline without CONFIG_NVME_HOST_AUTH. */
__nvme_core_helper void nvme_core_helper_auth_stop(struct nvme_ctrl *ctrl)
{
	nvme_auth_stop(ctrl);
}

/* Whether a module is in the kernel that has this name and is not "self". */
__nvme_core_helper bool
nvme_core_helper_module_exists(struct module *self, const char *name)
{
	struct kobject *kobj = kset_find_obj(self->mkobj.kobj.kset, name);
	/* A driver that is built in has an entry, too, but no module. */
	bool exists = kobj && kobj != &self->mkobj.kobj &&
		      container_of(kobj, struct module_kobject, kobj)->mod;

	kobject_put(kobj);
	return exists;
}

__nvme_core_helper void nvme_core_helper_flush_delete_wq(void)
{
	flush_workqueue(nvme_delete_wq);
}

__nvme_core_helper void
nvme_core_helper_add_reconnects(struct nvme_ctrl *ctrl)
{
	/* An attempt that succeeded ends the series. */
	atomic_long_add(ctrl->nr_reconnects, &ctrl->acc_reconnects);
	ctrl->nr_reconnects = 0;
}

__nvme_core_helper bool nvme_core_helper_trylock_scan(struct nvme_ctrl *ctrl)
{
	return mutex_trylock(&ctrl->scan_lock);
}

__nvme_core_helper void nvme_core_helper_unlock_scan(struct nvme_ctrl *ctrl)
{
	mutex_unlock(&ctrl->scan_lock);
}
