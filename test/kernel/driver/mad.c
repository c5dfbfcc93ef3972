// SPDX-License-Identifier: GPL-2.0
/*
 * What ib_mad and ib_umad need of a device, on InfiniBand ports: queue pairs whose requests complete and go nowhere, and an agent of subnet
 * management that answers datagrams for the own port, which the kernel hands to it without a wire.
 */
#include <linux/version.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>

#include "fakerdma.h"

#define CQ_ENTRIES 2048	/* ib_mad wants 1280 */

struct fake_pd {
	struct ib_pd ib;
};

struct fake_ah {
	struct ib_ah ib;
};

struct fake_qp {
	struct ib_qp ib;
};

/* Requests that have completed. */
struct fake_cq {
	struct ib_cq ib;
	spinlock_t lock;
	unsigned int head, tail;
	struct ib_wc wc[CQ_ENTRIES];
};

static int mad_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int mad_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int mad_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	return 0;
}

static int mad_destroy_ah(struct ib_ah *ah, u32 flags)
{
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static int mad_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs)
#else
static int mad_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
#endif
{
	struct fake_cq *f = container_of(cq, struct fake_cq, ib);

	spin_lock_init(&f->lock);
	return attr->cqe <= CQ_ENTRIES ? 0 : -EINVAL;
}

static int mad_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	return 0;
}

static int mad_poll_cq(struct ib_cq *cq, int max, struct ib_wc *wc)
{
	struct fake_cq *f = container_of(cq, struct fake_cq, ib);
	unsigned long flags;
	int n;

	spin_lock_irqsave(&f->lock, flags);
	for (n = 0; n < max && f->tail != f->head; n++)
		wc[n] = f->wc[f->tail++ % CQ_ENTRIES];
	spin_unlock_irqrestore(&f->lock, flags);
	return n;
}

static int mad_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	struct fake_cq *f = container_of(cq, struct fake_cq, ib);

	return flags & IB_CQ_REPORT_MISSED_EVENTS && READ_ONCE(f->tail) != READ_ONCE(f->head);
}

static int mad_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	qp->qp_num = attr->qp_type == IB_QPT_SMI ? 0 : 1;
	return 0;
}

static int mad_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	return 0;
}

static int mad_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	return 0;
}

static int mad_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct fake_cq *f = container_of(qp->send_cq, struct fake_cq, ib);
	unsigned long flags;

	for (; wr; wr = wr->next) {
		spin_lock_irqsave(&f->lock, flags);
		f->wc[f->head++ % CQ_ENTRIES] = (struct ib_wc){ .wr_cqe = wr->wr_cqe, .status = IB_WC_SUCCESS, .opcode = IB_WC_SEND, .qp = qp };
		spin_unlock_irqrestore(&f->lock, flags);
	}
	f->ib.comp_handler(&f->ib, f->ib.cq_context);
	return 0;
}

static int mad_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	return 0;	/* nothing comes */
}

static struct ib_mr *mad_get_dma_mr(struct ib_pd *pd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static struct ib_mr *mad_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 addr, int access, struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int mad_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	return -EOPNOTSUPP;
}

static const struct ib_device_ops mad_ops = {
	.alloc_pd = mad_alloc_pd,
	.dealloc_pd = mad_dealloc_pd,
	.create_ah = mad_create_ah,
	.destroy_ah = mad_destroy_ah,
	.create_cq = mad_create_cq,
	.destroy_cq = mad_destroy_cq,
	.poll_cq = mad_poll_cq,
	.req_notify_cq = mad_req_notify_cq,
	.create_qp = mad_create_qp,
	.modify_qp = mad_modify_qp,
	.destroy_qp = mad_destroy_qp,
	.post_send = mad_post_send,
	.post_recv = mad_post_recv,
	.get_dma_mr = mad_get_dma_mr,
	.reg_user_mr = mad_reg_user_mr,
	.dereg_mr = mad_dereg_mr,
	INIT_RDMA_OBJ_SIZE(ib_pd, fake_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_ah, fake_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, fake_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, fake_qp, ib),
};

void fake_mad_set_ops(struct ib_device *ib)
{
	ib->local_dma_lkey = 1;
	ib_set_device_ops(ib, &mad_ops);
}

/* PortInfo of a port that does 4X NDR, and has 1X and 4X, SDR to NDR enabled and supported (IBA 14.2.5.6). */
static void port_info(const struct fake *f, u8 *data)
{
	data[17] = 17 + f->index;
	data[19] = 1;
	data[22] = 0x40;	/* extended speeds */
	data[28] = 1;
	data[29] = data[30] = 3;
	data[31] = 2;
	data[32] = 0x70 | f->state;
	data[33] = f->phys_state << 4;
	data[35] = 0x47;
	data[62] = 0x8f;
	data[63] = 0x0f;
}

/* Answers subnet management as the port's own agent. */
int fake_smp(struct fake *f, const struct ib_mad *in, struct ib_mad *out)
{
	const struct ib_smp *request = (const void *)in;
	struct ib_smp *smp = (void *)out;
	__be64 guid = f->ib->ib.node_guid;

	*smp = *request;
	smp->method = IB_MGMT_METHOD_GET_RESP;
	smp->status = smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE ? IB_SMP_DIRECTION : 0;
	memset(smp->data, 0, sizeof(smp->data));
	if (request->method != IB_MGMT_METHOD_GET) {
		smp->status |= cpu_to_be16(2 << 2);	/* method not supported */
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
	}
	switch (smp->attr_id) {
	case IB_SMP_ATTR_NODE_DESC:
		strscpy(smp->data, f->ib->ib.node_desc, sizeof(smp->data));
		break;
	case IB_SMP_ATTR_NODE_INFO:
		smp->data[0] = smp->data[1] = smp->data[2] = smp->data[3] = 1;
		memcpy(smp->data + 4, &guid, sizeof(guid));
		memcpy(smp->data + 12, &guid, sizeof(guid));
		memcpy(smp->data + 20, &guid, sizeof(guid));
		smp->data[36] = 1;
		break;
	case IB_SMP_ATTR_PORT_INFO:
		port_info(f, smp->data);
		break;
	default:
		smp->status |= cpu_to_be16(3 << 2);	/* attribute not supported */
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
