// SPDX-License-Identifier: GPL-2.0
/*
 * A driver for tests: each Intel 82574 that QEMU emulates becomes an mlx5-shaped RDMA device, registered with the kernel's
 * own ib_core, netdev, ethtool and dcbnl code. Every value that it reports can be written below
 * /sys/kernel/debug/fakerdma/DEVICE/.
 */
#include <linux/idr.h>
#include <linux/module.h>

#include "fakerdma.h"

static char *ll = "ie";
module_param(ll, charp, 0444);
MODULE_PARM_DESC(ll, "link layer of each device in PCI order: i InfiniBand, e Ethernet; i where the string ends");

static uint link_speed, link_width;
module_param(link_speed, uint, 0444);
module_param(link_width, uint, 0444);
MODULE_PARM_DESC(link_speed, "of the PCIe links, as they run and at most, by its code in the registers; 0: what the machine has");
MODULE_PARM_DESC(link_width, "lanes of the PCIe links, as they run and at most");

static bool verbs;
module_param(verbs, bool, 0444);
MODULE_PARM_DESC(verbs, "InfiniBand devices have user space verbs");

static DEFINE_IDA(indexes);
static struct dentry *debugfs;

static void fake_free(struct fake *f)
{
	ida_free(&indexes, f->index);
	kfree(f);
}

static int fake_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct fake *f;
	int err;

	f = kzalloc(sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	f->index = ida_alloc_max(&indexes, MAX_DEVICES - 1, GFP_KERNEL);
	if (f->index < 0) {
		err = f->index;
		kfree(f);
		return err;
	}
	f->pdev = pdev;
	fake_pcie_add(f, link_speed, link_width);
	f->eth = f->index < strlen(ll) && ll[f->index] == 'e';

	f->verbs = verbs && !f->eth;

	if (f->eth) {
		err = fake_netdev_add(f, &pdev->dev);
		if (err)
			goto pcie;
	}
	err = fake_ib_add(f, &pdev->dev);
	if (err)
		goto netdev;
	err = fake_health_add(f);
	if (err)
		goto ib;

	f->debugfs = debugfs_create_dir(dev_name(&f->ib->ib.dev), debugfs);
	debugfs_create_bool("stuck", 0644, f->debugfs, &f->stuck);
	debugfs_create_u32("blocked", 0644, f->debugfs, &f->blocked);
	debugfs_create_u32("query_errno", 0644, f->debugfs, &f->query_errno);
	debugfs_create_u32("queries", 0444, f->debugfs, &f->queries);
	fake_ib_debugfs(f);
	if (f->verbs)
		fake_verbs_debugfs(f);
	fake_pcie_debugfs(f);
	fake_health_debugfs(f);
	if (f->eth)
		fake_netdev_debugfs(f);
	pci_set_drvdata(pdev, f);
	return 0;

ib:
	fake_ib_remove(f);
netdev:
	if (f->eth)
		fake_netdev_remove(f);
pcie:
	fake_pcie_remove(f);
	fake_free(f);
	return err;
}

static void fake_remove(struct pci_dev *pdev)
{
	struct fake *f = pci_get_drvdata(pdev);

	debugfs_remove_recursive(f->debugfs);
	WRITE_ONCE(f->stuck, false);	/* the core waits for readers */
	fake_health_remove(f);
	fake_ib_remove(f);
	if (f->eth)
		fake_netdev_remove(f);
	fake_pcie_remove(f);
	fake_free(f);
}

/* Without MODULE_DEVICE_TABLE: nothing may load this module by itself. */
static const struct pci_device_id fake_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_INTEL, 0x10d3) },
	{ }
};

/* The name is what the `driver` link of a ConnectX shows. */
static struct pci_driver fake_driver = {
	.name = "mlx5_core",
	.id_table = fake_ids,
	.probe = fake_probe,
	.remove = fake_remove,
};

static int __init fake_init(void)
{
	int err;

	debugfs = debugfs_create_dir("fakerdma", NULL);
	fake_log_debugfs(debugfs);
	err = pci_register_driver(&fake_driver);
	if (err)
		debugfs_remove_recursive(debugfs);
	return err;
}

static void __exit fake_exit(void)
{
	pci_unregister_driver(&fake_driver);
	debugfs_remove_recursive(debugfs);
}

module_init(fake_init);
module_exit(fake_exit);
MODULE_DESCRIPTION("mlx5-shaped RDMA devices for tests");
MODULE_LICENSE("GPL");
