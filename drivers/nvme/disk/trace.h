/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tracepoints of rnvmf.
 *
 * Each takes a structure from Rust that is valid only during the call: copy what is needed, and read
 * nothing beyond the structure. bindgen reads this file, too. Fields have the same names as in the
 * events of nvme and rdma_cma.
 */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM rnvmf

#if !defined(_RNVMF_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RNVMF_TRACE_H

#include <linux/blkdev.h>
#include <linux/nvme.h>
#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

#ifndef TRACE_HEADER_MULTI_READ

/* A command. */
struct rnvmf_trace_command {
	/* The controller; -1 for a discovery. */
	s32 ctrl_id;
	u16 qid;
	u16 cid;
	u8 opcode;
	u8 flags;
	/* Fabrics command type, or 0. Fabrics commands have no nsid. */
	u8 fctype;
	u32 nsid;
	/* Range of blocks, or 0 if the command has none. */
	u64 slba;
	u32 blocks;
	/* Length of the data, in bytes. */
	u32 bytes;
	/* Dwords 10 to 15. */
	u8 cdw10[24];
	/* Disk of the request; empty for other commands. */
	char disk[DISK_NAME_LEN];
};

/* The end of a command, with or without a response. */
struct rnvmf_trace_completion {
	s32 ctrl_id;
	u16 qid;
	u16 cid;
	u8 opcode;
	/* How often the request was sent before. */
	u8 retries;
	/* Status field without the phase bit. */
	u16 status;
	u64 result;
	char disk[DISK_NAME_LEN];
};

/* A change of a controller's state. */
struct rnvmf_trace_state {
	s32 ctrl_id;
	/* Error number of the failure that caused the change; 0 and no reason without one. */
	s32 error;
	char from[16];
	char to[16];
	char reason[128];
};

/* An event of the connection manager. */
struct rnvmf_trace_cm_event {
	s32 ctrl_id;
	u16 qid;
	/* enum rdma_cm_event_type */
	u32 event;
	s32 status;
};

#endif /* TRACE_HEADER_MULTI_READ */

/* Tools that parse raw events, such as perf, need the values of enumerators. */
TRACE_DEFINE_ENUM(nvme_fabrics_command);
TRACE_DEFINE_ENUM(nvme_cmd_flush);
TRACE_DEFINE_ENUM(nvme_cmd_write);
TRACE_DEFINE_ENUM(nvme_cmd_read);
TRACE_DEFINE_ENUM(nvme_cmd_write_uncor);
TRACE_DEFINE_ENUM(nvme_cmd_compare);
TRACE_DEFINE_ENUM(nvme_cmd_write_zeroes);
TRACE_DEFINE_ENUM(nvme_cmd_dsm);
TRACE_DEFINE_ENUM(nvme_cmd_verify);
TRACE_DEFINE_ENUM(nvme_cmd_resv_register);
TRACE_DEFINE_ENUM(nvme_cmd_resv_report);
TRACE_DEFINE_ENUM(nvme_cmd_resv_acquire);
TRACE_DEFINE_ENUM(nvme_cmd_io_mgmt_recv);
TRACE_DEFINE_ENUM(nvme_cmd_resv_release);
TRACE_DEFINE_ENUM(nvme_cmd_zone_mgmt_send);
TRACE_DEFINE_ENUM(nvme_cmd_zone_mgmt_recv);
TRACE_DEFINE_ENUM(nvme_cmd_zone_append);
TRACE_DEFINE_ENUM(nvme_admin_delete_sq);
TRACE_DEFINE_ENUM(nvme_admin_create_sq);
TRACE_DEFINE_ENUM(nvme_admin_get_log_page);
TRACE_DEFINE_ENUM(nvme_admin_delete_cq);
TRACE_DEFINE_ENUM(nvme_admin_create_cq);
TRACE_DEFINE_ENUM(nvme_admin_identify);
TRACE_DEFINE_ENUM(nvme_admin_abort_cmd);
TRACE_DEFINE_ENUM(nvme_admin_set_features);
TRACE_DEFINE_ENUM(nvme_admin_get_features);
TRACE_DEFINE_ENUM(nvme_admin_async_event);
TRACE_DEFINE_ENUM(nvme_admin_ns_mgmt);
TRACE_DEFINE_ENUM(nvme_admin_activate_fw);
TRACE_DEFINE_ENUM(nvme_admin_download_fw);
TRACE_DEFINE_ENUM(nvme_admin_dev_self_test);
TRACE_DEFINE_ENUM(nvme_admin_ns_attach);
TRACE_DEFINE_ENUM(nvme_admin_keep_alive);
TRACE_DEFINE_ENUM(nvme_admin_directive_send);
TRACE_DEFINE_ENUM(nvme_admin_directive_recv);
TRACE_DEFINE_ENUM(nvme_admin_virtual_mgmt);
TRACE_DEFINE_ENUM(nvme_admin_nvme_mi_send);
TRACE_DEFINE_ENUM(nvme_admin_nvme_mi_recv);
TRACE_DEFINE_ENUM(nvme_admin_dbbuf);
TRACE_DEFINE_ENUM(nvme_admin_format_nvm);
TRACE_DEFINE_ENUM(nvme_admin_security_send);
TRACE_DEFINE_ENUM(nvme_admin_security_recv);
TRACE_DEFINE_ENUM(nvme_admin_sanitize_nvm);
TRACE_DEFINE_ENUM(nvme_admin_get_lba_status);
TRACE_DEFINE_ENUM(nvme_fabrics_type_property_set);
TRACE_DEFINE_ENUM(nvme_fabrics_type_connect);
TRACE_DEFINE_ENUM(nvme_fabrics_type_property_get);
TRACE_DEFINE_ENUM(nvme_fabrics_type_auth_send);
TRACE_DEFINE_ENUM(nvme_fabrics_type_auth_receive);

TRACE_EVENT(rnvmf_queue_command,
	TP_PROTO(const struct rnvmf_trace_command *command),
	TP_ARGS(command),
	TP_STRUCT__entry(
		__array(char, disk, DISK_NAME_LEN)
		__field(int, ctrl_id)
		__field(u16, qid)
		__field(u16, cid)
		__field(u8, opcode)
		__field(u8, flags)
		__field(u8, fctype)
		__field(u32, nsid)
		__field(u64, slba)
		__field(u32, blocks)
		__field(u32, bytes)
		__array(u8, cdw10, 24)
	),
	TP_fast_assign(
		strscpy_pad(__entry->disk, command->disk, DISK_NAME_LEN);
		__entry->ctrl_id = command->ctrl_id;
		__entry->qid = command->qid;
		__entry->cid = command->cid;
		__entry->opcode = command->opcode;
		__entry->flags = command->flags;
		__entry->fctype = command->fctype;
		__entry->nsid = command->nsid;
		__entry->slba = command->slba;
		__entry->blocks = command->blocks;
		__entry->bytes = command->bytes;
		memcpy(__entry->cdw10, command->cdw10, sizeof(__entry->cdw10));
	),
	TP_printk("rnvmf%d: disk=%s, qid=%u, cmdid=%u, nsid=%u, flags=0x%x, bytes=%u, cmd=(%s slba=%llu, blocks=%u, cdw10=%s)",
		__entry->ctrl_id, __entry->disk, __entry->qid, __entry->cid, __entry->nsid,
		__entry->flags, __entry->bytes,
		show_opcode_name(__entry->qid, __entry->opcode, __entry->fctype),
		__entry->slba, __entry->blocks, __print_hex(__entry->cdw10, 24)
	)
);

TRACE_EVENT(rnvmf_complete_command,
	TP_PROTO(const struct rnvmf_trace_completion *completion),
	TP_ARGS(completion),
	TP_STRUCT__entry(
		__array(char, disk, DISK_NAME_LEN)
		__field(int, ctrl_id)
		__field(u16, qid)
		__field(u16, cid)
		__field(u64, result)
		__field(u8, opcode)
		__field(u8, retries)
		__field(u16, status)
	),
	TP_fast_assign(
		strscpy_pad(__entry->disk, completion->disk, DISK_NAME_LEN);
		__entry->ctrl_id = completion->ctrl_id;
		__entry->qid = completion->qid;
		__entry->cid = completion->cid;
		__entry->result = completion->result;
		__entry->opcode = completion->opcode;
		__entry->retries = completion->retries;
		__entry->status = completion->status;
	),
	TP_printk("rnvmf%d: disk=%s, qid=%u, cmdid=%u, opcode=0x%x, res=%#llx, retries=%u, status=%#x",
		__entry->ctrl_id, __entry->disk, __entry->qid, __entry->cid, __entry->opcode,
		__entry->result, __entry->retries, __entry->status
	)
);

TRACE_EVENT(rnvmf_controller_state,
	TP_PROTO(const struct rnvmf_trace_state *state),
	TP_ARGS(state),
	TP_STRUCT__entry(
		__field(int, ctrl_id)
		__field(int, error)
		__array(char, from, 16)
		__array(char, to, 16)
		__string_len(reason, state->reason, strnlen(state->reason, sizeof(state->reason)))
	),
	TP_fast_assign(
		__entry->ctrl_id = state->ctrl_id;
		__entry->error = state->error;
		strscpy_pad(__entry->from, state->from, sizeof(__entry->from));
		strscpy_pad(__entry->to, state->to, sizeof(__entry->to));
		__assign_str(reason);
	),
	TP_printk("rnvmf%d: from=%s, to=%s, error=%d, reason=%s",
		__entry->ctrl_id, __entry->from, __entry->to, __entry->error, __get_str(reason)
	)
);

TRACE_EVENT(rnvmf_cm_event,
	TP_PROTO(const struct rnvmf_trace_cm_event *event),
	TP_ARGS(event),
	TP_STRUCT__entry(
		__field(int, ctrl_id)
		__field(u16, qid)
		__field(u32, event)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->ctrl_id = event->ctrl_id;
		__entry->qid = event->qid;
		__entry->event = event->event;
		__entry->status = event->status;
	),
	TP_printk("rnvmf%d: qid=%u, event=%s, status=%d",
		__entry->ctrl_id, __entry->qid, rdma_show_cm_event(__entry->event), __entry->status
	)
);

#endif /* _RNVMF_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace

/* This part must be outside protection */
#include <trace/define_trace.h>
