// SPDX-License-Identifier: GPL-2.0
/*
 * The PCIe link above a function. The endpoints that QEMU has can one lane at 2.5 GT/s, so that no link of theirs is below what it can. What
 * is written here is what the link registers of both ends show when the kernel reads them, as aer_inject does it with the registers of
 * AER; all else of configuration space is the machine's.
 */
#include "fakerdma.h"

#define BUSES 2	/* of the function, of the root port */

/* What has been put in front of a bus. Readers hold the lock of configuration space, with interrupts off. */
static struct fake_bus {
	struct pci_bus *bus;
	struct pci_ops *ops;
	int users;
} buses[BUSES * MAX_DEVICES];
static struct fake *fakes[MAX_DEVICES];

static struct pci_ops *ops_of(struct pci_bus *bus)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(buses); i++)
		if (buses[i].bus == bus)
			return buses[i].ops;
	return NULL;
}

/* A value that is 0 shows what the machine has. */
static void overlay(const struct fake_link *l, int reg, u32 *val)
{
	switch (reg) {
	case PCI_EXP_LNKCAP:
		if (l->max_speed)
			*val = (*val & ~PCI_EXP_LNKCAP_SLS) | l->max_speed;
		if (l->max_width)
			*val = (*val & ~PCI_EXP_LNKCAP_MLW) | l->max_width << 4;
		break;
	case PCI_EXP_LNKCAP2:
		if (l->max_speed)
			*val = GENMASK(l->max_speed, 1);
		break;
	case PCI_EXP_LNKSTA:
		if (l->speed)
			*val = (*val & ~PCI_EXP_LNKSTA_CLS) | l->speed;
		if (l->width)
			*val = (*val & ~PCI_EXP_LNKSTA_NLW) | l->width << PCI_EXP_LNKSTA_NLW_SHIFT;
		break;
	}
}

static bool is(const struct pci_dev *pdev, const struct pci_bus *bus, unsigned int devfn)
{
	return pdev && pdev->bus == bus && pdev->devfn == devfn;
}

static int fake_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *val)
{
	struct pci_dev *port;
	struct fake *f;
	int i, err;

	err = ops_of(bus)->read(bus, devfn, where, size, val);
	for (i = 0; !err && i < MAX_DEVICES; i++) {
		f = READ_ONCE(fakes[i]);
		if (!f)
			continue;
		port = pci_upstream_bridge(f->pdev);
		if (is(f->pdev, bus, devfn))
			overlay(&f->link, where - f->pdev->pcie_cap, val);
		else if (is(port, bus, devfn))
			overlay(&f->link, where - port->pcie_cap, val);
	}
	return err;
}

static int fake_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 val)
{
	return ops_of(bus)->write(bus, devfn, where, size, val);
}

static struct pci_ops fake_ops = { .read = fake_read, .write = fake_write };

static void take(struct pci_bus *bus)
{
	struct fake_bus *empty = NULL;
	int i;

	for (i = 0; i < ARRAY_SIZE(buses); i++) {
		if (buses[i].bus == bus) {
			buses[i].users++;
			return;
		}
		if (!buses[i].bus && !empty)
			empty = &buses[i];
	}
	empty->ops = bus->ops;
	empty->users = 1;
	smp_store_release(&empty->bus, bus);
	pci_bus_set_ops(bus, &fake_ops);
}

static void release(struct pci_bus *bus)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(buses); i++) {
		if (buses[i].bus != bus || --buses[i].users)
			continue;
		pci_bus_set_ops(bus, buses[i].ops);
		buses[i].bus = NULL;
	}
}

/* Kernels that have read the speeds of a link when they found the function show what they have kept. */
static void set_max_speed(struct fake *f, u32 speed)
{
	f->link.max_speed = speed;
#ifdef HAS_SUPPORTED_SPEEDS
	if (!speed)
		return;
	f->pdev->supported_speeds = GENMASK(speed, 1);
	if (pci_upstream_bridge(f->pdev))
		pci_upstream_bridge(f->pdev)->supported_speeds = GENMASK(speed, 1);
#endif
}

/* Probe and remove of several functions may run side by side. */
static DEFINE_MUTEX(buses_lock);

void fake_pcie_add(struct fake *f, u32 speed, u32 width)
{
	f->link = (struct fake_link){ .speed = speed, .width = width, .max_width = width };
	set_max_speed(f, speed);
	mutex_lock(&buses_lock);
	take(f->pdev->bus);
	if (f->pdev->bus->parent)
		take(f->pdev->bus->parent);
	WRITE_ONCE(fakes[f->index], f);
	mutex_unlock(&buses_lock);
}

void fake_pcie_remove(struct fake *f)
{
	mutex_lock(&buses_lock);
	WRITE_ONCE(fakes[f->index], NULL);
	synchronize_rcu();
	release(f->pdev->bus);
	if (f->pdev->bus->parent)
		release(f->pdev->bus->parent);
	mutex_unlock(&buses_lock);
}

void fake_pcie_debugfs(struct fake *f)
{
	struct dentry *dir = debugfs_create_dir("pcie", f->debugfs);

	debugfs_create_u32("speed", 0644, dir, &f->link.speed);
	debugfs_create_u32("width", 0644, dir, &f->link.width);
}
