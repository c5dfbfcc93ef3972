/* An invented driver, for the test of the extractor. pr_err("in a comment\n"); */
#define pr_fmt(fmt) "example: " fmt
#define dev_fmt(fmt) "TAG: " fmt
#define example_warn(dev, fmt, ...) \
	dev_warn(dev, "%s: " fmt, __func__, ##__VA_ARGS__)

static int example_probe(struct pci_dev *pdev)
{
	if (pci_enable_device(pdev)) {
		pci_err(pdev, "Cannot enable (PCI) \"device\", aborting\n");
		return -ENODEV;
	}
	pci_info(pdev, "info is not extracted\n");
	dev_err_ratelimited(&pdev->dev, "status 0x%08x of "
			    "queue %d", status, queue);
	mlx5_core_warn(dev, "%s(0x%x) timeout, address %" PRIx64 "\n", name(op),
		       op, address);
	printk(KERN_INFO "nor is this\n");
	printk(KERN_ERR "printk %s\n", name);
	return 0;
}

void *
example_read(struct device *dev)
{
	pr_err_once("no (%pR) memory\n", res);
	netdev_warn(netdev, format_of(dev));
	return NULL;
}
