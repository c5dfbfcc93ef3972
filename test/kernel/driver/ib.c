// SPDX-License-Identifier: GPL-2.0
/* The RDMA device: port attributes, PMA counters with the widths of the wire format, hw_counters in the order of mlx5. */
#include <linux/delay.h>
#include <linux/module.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "fakerdma.h"

enum {
	SYMBOL_ERROR, LINK_ERROR_RECOVERY, LINK_DOWNED, RCV_ERRORS, RCV_REMPHYS_ERRORS, RCV_SWITCH_RELAY_ERRORS,
	XMIT_DISCARDS, XMIT_CONSTRAINT_ERRORS, RCV_CONSTRAINT_ERRORS, LOCAL_LINK_INTEGRITY, BUFFER_OVERRUN, VL15_DROPPED,
	XMIT_DATA, RCV_DATA, XMIT_PACKETS, RCV_PACKETS, XMIT_WAIT,
	UNICAST_XMIT, UNICAST_RCV, MULTICAST_XMIT, MULTICAST_RCV,
	NUM_PMA
};

/* The names of the files in sysfs. */
static const char * const pma_names[NUM_PMA] = {
	[SYMBOL_ERROR] = "symbol_error",
	[LINK_ERROR_RECOVERY] = "link_error_recovery",
	[LINK_DOWNED] = "link_downed",
	[RCV_ERRORS] = "port_rcv_errors",
	[RCV_REMPHYS_ERRORS] = "port_rcv_remote_physical_errors",
	[RCV_SWITCH_RELAY_ERRORS] = "port_rcv_switch_relay_errors",
	[XMIT_DISCARDS] = "port_xmit_discards",
	[XMIT_CONSTRAINT_ERRORS] = "port_xmit_constraint_errors",
	[RCV_CONSTRAINT_ERRORS] = "port_rcv_constraint_errors",
	[LOCAL_LINK_INTEGRITY] = "local_link_integrity_errors",
	[BUFFER_OVERRUN] = "excessive_buffer_overrun_errors",
	[VL15_DROPPED] = "VL15_dropped",
	[XMIT_DATA] = "port_xmit_data",
	[RCV_DATA] = "port_rcv_data",
	[XMIT_PACKETS] = "port_xmit_packets",
	[RCV_PACKETS] = "port_rcv_packets",
	[XMIT_WAIT] = "port_xmit_wait",
	[UNICAST_XMIT] = "unicast_xmit_packets",
	[UNICAST_RCV] = "unicast_rcv_packets",
	[MULTICAST_XMIT] = "multicast_xmit_packets",
	[MULTICAST_RCV] = "multicast_rcv_packets",
};

static const struct rdma_stat_desc hw_descs[] = {
	{ .name = "rx_write_requests" }, { .name = "rx_read_requests" }, { .name = "rx_atomic_requests" },
	{ .name = "rx_dct_connect" }, { .name = "out_of_buffer" }, { .name = "out_of_sequence" },
	{ .name = "duplicate_request" }, { .name = "rnr_nak_retry_err" }, { .name = "packet_seq_err" },
	{ .name = "implied_nak_seq_err" }, { .name = "local_ack_timeout_err" }, { .name = "resp_local_length_error" },
	{ .name = "resp_cqe_error" }, { .name = "req_cqe_error" }, { .name = "req_remote_invalid_request" },
	{ .name = "req_remote_access_errors" }, { .name = "resp_remote_access_errors" },
	{ .name = "resp_cqe_flush_error" }, { .name = "req_cqe_flush_error" },
	{ .name = "req_transport_retries_exceeded" }, { .name = "req_rnr_retries_exceeded" },
	{ .name = "roce_adp_retrans" }, { .name = "roce_adp_retrans_to" }, { .name = "roce_slow_restart" },
	{ .name = "roce_slow_restart_cnps" }, { .name = "roce_slow_restart_trans" }, { .name = "rp_cnp_ignored" },
	{ .name = "rp_cnp_handled" }, { .name = "np_ecn_marked_roce_packets" }, { .name = "np_cnp_sent" },
	{ .name = "rx_icrc_encapsulated" },
};
#define NUM_HW ARRAY_SIZE(hw_descs)

static struct fake *to_fake(struct ib_device *ib)
{
	return container_of(ib, struct fake_ib, ib)->fake;
}

struct fake *fake_of(struct ib_device *ib)
{
	return to_fake(ib);
}

static int ask_firmware(struct fake *f)
{
	f->queries++;
	while (READ_ONCE(f->stuck))
		msleep(10);
	/* without waking up in between, which the kernel reports as a hung task */
	if (READ_ONCE(f->blocked))
		schedule_timeout_uninterruptible(READ_ONCE(f->blocked) * HZ);
	return -(int)READ_ONCE(f->query_errno);
}

static int fake_query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	attr->max_pkeys = 1;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->sys_image_guid = ib->node_guid;
	attr->vendor_id = 0x02c9;
	attr->vendor_part_id = 4129;
	return 0;
}

static int fake_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct fake *f = to_fake(ib);
	int err;

	err = ask_firmware(f);
	if (err)
		return err;
	attr->state = f->state;
	attr->phys_state = f->phys_state;
	attr->active_speed = f->speed;
	attr->active_width = f->width;
	/* As mlx5 does: a RoCE port follows its netdev, and one without a link shows the preset rate. */
	if (f->eth && !(netif_running(f->netdev) && netif_carrier_ok(f->netdev))) {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
		attr->active_speed = IB_SPEED_QDR;
		attr->active_width = IB_WIDTH_4X;
	}
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = f->eth ? iboe_get_mtu(f->netdev->mtu) : IB_MTU_4096;
	attr->gid_tbl_len = f->eth ? 16 : 1;
	attr->pkey_tbl_len = 1;
	attr->lid = f->eth ? 0 : 17 + f->index;
	attr->sm_lid = f->eth ? 0 : 1;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = 1 << 30;
	return 0;
}

static int fake_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *im)
{
	bool eth = to_fake(ib)->eth;

	im->gid_tbl_len = eth ? 16 : 1;
	im->pkey_tbl_len = 1;
	im->core_cap_flags = eth ? RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP : RDMA_CORE_PORT_IBA_IB;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer fake_link_layer(struct ib_device *ib, u32 port)
{
	return to_fake(ib)->eth ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

static int fake_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id = ib->node_guid;
	return 0;
}

static int fake_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

static int fake_add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int fake_del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static void fake_fw_version(struct ib_device *ib, char *s)
{
	snprintf(s, IB_FW_VERSION_NAME_MAX, "28.43.1014");
}

/* A PMA counter stops at its largest value. */
static u32 saturate(u64 value, unsigned int bits)
{
	return min_t(u64, value, GENMASK_ULL(bits - 1, 0));
}

static void port_counters(const u64 *c, struct ib_pma_portcounters *p)
{
	p->symbol_error_counter = cpu_to_be16(saturate(c[SYMBOL_ERROR], 16));
	p->link_error_recovery_counter = saturate(c[LINK_ERROR_RECOVERY], 8);
	p->link_downed_counter = saturate(c[LINK_DOWNED], 8);
	p->port_rcv_errors = cpu_to_be16(saturate(c[RCV_ERRORS], 16));
	p->port_rcv_remphys_errors = cpu_to_be16(saturate(c[RCV_REMPHYS_ERRORS], 16));
	p->port_rcv_switch_relay_errors = cpu_to_be16(saturate(c[RCV_SWITCH_RELAY_ERRORS], 16));
	p->port_xmit_discards = cpu_to_be16(saturate(c[XMIT_DISCARDS], 16));
	p->port_xmit_constraint_errors = saturate(c[XMIT_CONSTRAINT_ERRORS], 8);
	p->port_rcv_constraint_errors = saturate(c[RCV_CONSTRAINT_ERRORS], 8);
	p->link_overrun_errors = saturate(c[LOCAL_LINK_INTEGRITY], 4) << 4 | saturate(c[BUFFER_OVERRUN], 4);
	p->vl15_dropped = cpu_to_be16(saturate(c[VL15_DROPPED], 16));
	p->port_xmit_data = cpu_to_be32(saturate(c[XMIT_DATA], 32));
	p->port_rcv_data = cpu_to_be32(saturate(c[RCV_DATA], 32));
	p->port_xmit_packets = cpu_to_be32(saturate(c[XMIT_PACKETS], 32));
	p->port_rcv_packets = cpu_to_be32(saturate(c[RCV_PACKETS], 32));
	p->port_xmit_wait = cpu_to_be32(saturate(c[XMIT_WAIT], 32));
}

static void port_counters_ext(const u64 *c, struct ib_pma_portcounters_ext *p)
{
	p->port_xmit_data = cpu_to_be64(c[XMIT_DATA]);
	p->port_rcv_data = cpu_to_be64(c[RCV_DATA]);
	p->port_xmit_packets = cpu_to_be64(c[XMIT_PACKETS]);
	p->port_rcv_packets = cpu_to_be64(c[RCV_PACKETS]);
	p->port_unicast_xmit_packets = cpu_to_be64(c[UNICAST_XMIT]);
	p->port_unicast_rcv_packets = cpu_to_be64(c[UNICAST_RCV]);
	p->port_multicast_xmit_packets = cpu_to_be64(c[MULTICAST_XMIT]);
	p->port_multicast_rcv_packets = cpu_to_be64(c[MULTICAST_RCV]);
}

/* The core asks once for ClassPortInfo, to choose the files of counters/, and then with one MAD for each read. */
static int fake_process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
			    const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *out_pkey_index)
{
	struct ib_pma_mad *pma = (void *)out;
	struct fake *f = to_fake(ib);

	switch (in->mad_hdr.mgmt_class) {
	case IB_MGMT_CLASS_PERF_MGMT:
		break;
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
		return fake_smp(f, in, out);
	default:
		return IB_MAD_RESULT_SUCCESS;
	}

	if (ask_firmware(f))
		return IB_MAD_RESULT_FAILURE;
	out->mad_hdr = in->mad_hdr;
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		((struct ib_class_port_info *)pma->data)->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
		break;
	case IB_PMA_PORT_COUNTERS_EXT:
		port_counters_ext(f->pma, (void *)pma->data);
		break;
	default:
		port_counters(f->pma, (void *)pma->data);
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

static struct rdma_hw_stats *fake_alloc_hw_stats(struct ib_device *ib, u32 port)
{
	return rdma_alloc_hw_stats_struct(hw_descs, NUM_HW, RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int fake_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct fake *f = to_fake(ib);
	int err;

	err = ask_firmware(f);
	if (err)
		return err;
	memcpy(stats->value, f->hw, NUM_HW * sizeof(*f->hw));
	return NUM_HW;
}

static ssize_t hca_type_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "MT4129\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "0\n");
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "MT_0000000838\n");
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *fake_attrs[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	&dev_attr_board_id.attr,
	NULL
};

static const struct attribute_group fake_attr_group = { .attrs = fake_attrs };

static const struct ib_device_ops fake_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.query_device = fake_query_device,
	.query_port = fake_query_port,
	.get_port_immutable = fake_port_immutable,
	.get_link_layer = fake_link_layer,
	.query_gid = fake_query_gid,
	.query_pkey = fake_query_pkey,
	.add_gid = fake_add_gid,
	.del_gid = fake_del_gid,
	.get_dev_fw_str = fake_fw_version,
	.process_mad = fake_process_mad,
	.alloc_hw_port_stats = fake_alloc_hw_stats,
	.get_hw_stats = fake_get_hw_stats,
	.device_group = &fake_attr_group,
};

int fake_ib_add(struct fake *f, struct device *parent)
{
	char name[IB_DEVICE_NAME_MAX];
	struct ib_device *ib;
	int err = -ENOMEM;

	f->state = IB_PORT_ACTIVE;
	f->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	f->speed = IB_SPEED_NDR;
	f->width = IB_WIDTH_4X;
	f->pma = kcalloc(NUM_PMA, sizeof(*f->pma), GFP_KERNEL);
	f->hw = kcalloc(NUM_HW, sizeof(*f->hw), GFP_KERNEL);
	f->ib = ib_alloc_device(fake_ib, ib);
	if (!f->pma || !f->hw || !f->ib)
		goto free;

	f->ib->fake = f;
	ib = &f->ib->ib;
	ib->phys_port_cnt = 1;
	ib->node_type = RDMA_NODE_IB_CA;
	ib->dev.parent = parent;
	ib->num_comp_vectors = 1;
	ib->node_guid = cpu_to_be64(0xb83fd20300a1b200ULL + f->index);
	snprintf(ib->node_desc, sizeof(ib->node_desc), "fake mlx5_%d", f->index);
	ib_set_device_ops(ib, &fake_ops);
	if (f->verbs)
		fake_verbs_set_ops(ib);
	if (!f->eth)
		fake_mad_set_ops(ib);
	if (f->eth) {
		err = ib_device_set_netdev(ib, f->netdev, 1);
		if (err)
			goto free;
	}
	snprintf(name, sizeof(name), "mlx5_%d", f->index);
	err = ib_register_device(ib, name, f->verbs ? parent : NULL);
	if (err)
		goto free;
	return 0;

free:
	if (f->ib)
		ib_dealloc_device(&f->ib->ib);
	kfree(f->hw);
	kfree(f->pma);
	return err;
}

void fake_ib_remove(struct fake *f)
{
	ib_unregister_device(&f->ib->ib);
	ib_dealloc_device(&f->ib->ib);
	kfree(f->hw);
	kfree(f->pma);
}

void fake_ib_debugfs(struct fake *f)
{
	struct dentry *dir;
	int i;

	debugfs_create_u32("state", 0644, f->debugfs, &f->state);
	debugfs_create_u32("phys_state", 0644, f->debugfs, &f->phys_state);
	debugfs_create_u32("active_speed", 0644, f->debugfs, &f->speed);
	debugfs_create_u32("active_width", 0644, f->debugfs, &f->width);
	dir = debugfs_create_dir("counters", f->debugfs);
	for (i = 0; i < NUM_PMA; i++)
		debugfs_create_u64(pma_names[i], 0644, dir, &f->pma[i]);
	dir = debugfs_create_dir("hw_counters", f->debugfs);
	for (i = 0; i < NUM_HW; i++)
		debugfs_create_u64(hw_descs[i].name, 0644, dir, &f->hw[i]);
}
