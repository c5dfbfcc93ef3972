/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FAKERDMA_H
#define FAKERDMA_H

#include <linux/dcbnl.h>
#include <linux/debugfs.h>
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <rdma/ib_verbs.h>

#define MAX_DEVICES 16
#define EEPROM_PAGES 0x12	/* to page 11h, which CMIS needs */

struct devlink;
struct devlink_health_reporter;
struct fake;
struct ib_mad;

/* ib_alloc_device() wants the ib_device to come first. */
struct fake_ib {
	struct ib_device ib;
	struct fake *fake;
};

/* What the registers of a PCIe link show, in their codes; 0: what the machine has. */
struct fake_link {
	u32 speed, width, max_speed, max_width;
};

/* One PCI function: one RDMA device with one port and, on Ethernet, one netdev. */
struct fake {
	int index;
	bool eth;
	struct pci_dev *pdev;
	struct fake_ib *ib;
	struct net_device *netdev;
	struct dentry *debugfs;
	bool stuck;		/* a query "of the firmware" does not return until this is cleared */
	u32 blocked;		/* seconds that a query waits */
	u32 query_errno;	/* what it fails with; 0: it answers */
	u32 queries;		/* how many were begun */

	/* pcie.c */
	struct fake_link link;

	/* health.c */
	struct device *hwmon;
	u32 temperature, temperature_critical;	/* thousandths of a degree Celsius, signed */
	struct devlink *devlink;
	struct devlink_health_reporter *fw, *fw_fatal;

	/* verbs.c */
	bool verbs;		/* processes may open it */
	struct ib_qp *user_qp;	/* the last one of a process */

	/* ib.c */
	u32 state, phys_state, speed, width;
	u64 *pma, *hw;

	/* netdev.c */
	u32 mbps, pfc_enabled, eeprom_errno;
	u32 ethtool_stall;	/* seconds that a query of the link settings takes, with rtnl held */
	u32 ethtool_calls;	/* how many were begun */
	struct ieee_ets ets;
	u8 trust;		/* the selector that gives a packet its priority */
	u32 ext_state, ext_substate;	/* why the link is down, by its number plus one; 0: it does not say */
	u64 *ethtool, link_down_events;
	u64 pause[2], fec[2], pfc_requests[8], pfc_indications[8];
	u8 eeprom[(1 + EEPROM_PAGES) * ETH_MODULE_EEPROM_PAGE_LEN];
};

void fake_pcie_add(struct fake *f, u32 speed, u32 width);
void fake_pcie_remove(struct fake *f);
void fake_pcie_debugfs(struct fake *f);

int fake_health_add(struct fake *f);
void fake_health_remove(struct fake *f);
void fake_health_debugfs(struct fake *f);

/* log.c */
void fake_log_debugfs(struct dentry *dir);

int fake_ib_add(struct fake *f, struct device *parent);
void fake_ib_remove(struct fake *f);
void fake_ib_debugfs(struct fake *f);

struct fake *fake_of(struct ib_device *ib);

void fake_verbs_set_ops(struct ib_device *ib);
void fake_verbs_debugfs(struct fake *f);

void fake_mad_set_ops(struct ib_device *ib);
int fake_smp(struct fake *f, const struct ib_mad *in, struct ib_mad *out);

int fake_netdev_add(struct fake *f, struct device *parent);
void fake_netdev_remove(struct fake *f);
void fake_netdev_debugfs(struct fake *f);

#endif
