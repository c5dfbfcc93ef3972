// SPDX-License-Identifier: GPL-2.0
/*
 * User space verbs, as far as a process needs them to register memory: of its own (ib_umem_get) and of a DMA-BUF
 * (ib_umem_dmabuf_get_pinned), as mlx5 does it. No data moves. Events of the device and of the queue pairs are written to debugfs.
 */
#include <linux/version.h>
#include <rdma/ib_umem.h>

#include "fakerdma.h"

struct fake_context {
	struct ib_ucontext ib;
};

struct fake_mr {
	struct ib_mr ib;
	struct ib_umem *umem;
};

static int verbs_alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void verbs_dealloc_ucontext(struct ib_ucontext *context)
{
}

static struct ib_mr *verbs_new_mr(struct ib_umem *umem)
{
	struct fake_mr *mr;

	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr) {
		ib_umem_release(umem);
		return ERR_PTR(-ENOMEM);
	}
	mr->umem = umem;
	mr->ib.lkey = mr->ib.rkey = 1;
	return &mr->ib;
}

static struct ib_mr *verbs_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 addr, int access, struct ib_udata *udata)
{
	return verbs_new_mr(ib_umem_get(pd->device, start, length, access));
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static struct ib_mr *verbs_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 addr, int fd, int access, struct uverbs_attr_bundle *attrs)
#else
static struct ib_mr *verbs_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 addr, int fd, int access, struct ib_udata *udata)
#endif
{
	struct ib_umem_dmabuf *umem = ib_umem_dmabuf_get_pinned(pd->device, offset, length, fd, access);

	return verbs_new_mr(IS_ERR(umem) ? ERR_CAST(umem) : &umem->umem);
}

static int verbs_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct fake_mr *mr = container_of(ib, struct fake_mr, ib);

	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}

/* The last queue pair of a process: its events are written to debugfs. */
static int verbs_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct fake *f = fake_of(qp->device);

	if (udata) {
		qp->qp_num = 100;
		WRITE_ONCE(f->user_qp, qp);
	} else {
		qp->qp_num = attr->qp_type == IB_QPT_SMI ? 0 : 1;
	}
	return 0;
}

static int verbs_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct fake *f = fake_of(qp->device);

	if (READ_ONCE(f->user_qp) == qp)
		WRITE_ONCE(f->user_qp, NULL);
	return 0;
}

static const struct ib_device_ops verbs_ops = {
	.uverbs_abi_ver = 1,
	.alloc_ucontext = verbs_alloc_ucontext,
	.dealloc_ucontext = verbs_dealloc_ucontext,
	.reg_user_mr = verbs_reg_user_mr,
	.reg_user_mr_dmabuf = verbs_reg_user_mr_dmabuf,
	.dereg_mr = verbs_dereg_mr,
	.create_qp = verbs_create_qp,
	.destroy_qp = verbs_destroy_qp,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, fake_context, ib),
};

/* Operations that are set first stay. */
void fake_verbs_set_ops(struct ib_device *ib)
{
	ib_set_device_ops(ib, &verbs_ops);
}

static int device_event_set(void *data, u64 kind)
{
	struct fake *f = data;
	struct ib_event event = { .device = &f->ib->ib, .event = kind, .element.port_num = 1 };

	ib_dispatch_event(&event);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(device_event_fops, NULL, device_event_set, "%llu\n");

static int qp_event_set(void *data, u64 kind)
{
	struct fake *f = data;
	struct ib_qp *qp = READ_ONCE(f->user_qp);
	struct ib_event event = { .device = &f->ib->ib, .event = kind, .element.qp = qp };

	if (!qp)
		return -ENOENT;
	qp->event_handler(&event, qp->qp_context);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(qp_event_fops, NULL, qp_event_set, "%llu\n");

void fake_verbs_debugfs(struct fake *f)
{
	debugfs_create_file("device_event", 0200, f->debugfs, f, &device_event_fops);
	debugfs_create_file("qp_event", 0200, f->debugfs, f, &qp_event_fops);
}
