// SPDX-License-Identifier: GPL-2.0
/* The Ethernet side of a RoCE port: link, ethtool statistics by string and by netlink, module EEPROM, DCB. */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <linux/version.h>
#include <net/dcbnl.h>

#include "fakerdma.h"

#define PRIORITIES 8
#define LOSSLESS 3
#define SFF8024_QSFP28 0x11

static const char * const priority_stats[] = {
	"rx_prio%d_pause", "tx_prio%d_pause", "rx_prio%d_pause_duration", "tx_prio%d_pause_duration", "rx_prio%d_discards",
};
static const char * const port_stats[] = {
	"rx_discards_phy", "tx_discards_phy", "rx_crc_errors_phy", "rx_symbol_err_phy", "rx_out_of_buffer",
	"rx_pcs_symbol_err_phy", "link_down_events_phy", "outbound_pci_stalled_wr", "module_bad_shorted",
};
#define NUM_PAUSE_STATS (4 * PRIORITIES)	/* shown of priorities with PFC only, as mlx5 does */
#define NUM_PRIORITY_STATS (ARRAY_SIZE(priority_stats) * PRIORITIES)
#define NUM_STATS (NUM_PRIORITY_STATS + ARRAY_SIZE(port_stats))

static struct fake *to_fake(struct net_device *netdev)
{
	return *(struct fake **)netdev_priv(netdev);
}

static void stat_name(int i, char *name)
{
	if (i < NUM_PRIORITY_STATS)
		snprintf(name, ETH_GSTRING_LEN, priority_stats[i / PRIORITIES], i % PRIORITIES);
	else
		snprintf(name, ETH_GSTRING_LEN, "%s", port_stats[i - NUM_PRIORITY_STATS]);
}

static bool stat_shown(struct fake *f, int i)
{
	return i >= NUM_PAUSE_STATS || f->pfc_enabled & BIT(i % PRIORITIES);
}

static netdev_tx_t fake_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

/* The kernel's watchdog has found a queue that stands still. */
static void fake_tx_timeout(struct net_device *netdev, unsigned int queue)
{
	netif_tx_wake_all_queues(netdev);
}

static const struct net_device_ops fake_netdev_ops = {
	.ndo_start_xmit = fake_xmit,
	.ndo_tx_timeout = fake_tx_timeout,
	.ndo_set_mac_address = eth_mac_addr,
};

static int get_pfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	struct fake *f = to_fake(netdev);

	pfc->pfc_cap = PRIORITIES;
	pfc->pfc_en = f->pfc_enabled;
	memcpy(pfc->requests, f->pfc_requests, sizeof(f->pfc_requests));
	memcpy(pfc->indications, f->pfc_indications, sizeof(f->pfc_indications));
	return 0;
}

static int set_pfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	to_fake(netdev)->pfc_enabled = pfc->pfc_en;
	return 0;
}

static void default_ets(struct ieee_ets *ets)
{
	int i;

	ets->ets_cap = PRIORITIES;
	for (i = 0; i < PRIORITIES; i++) {
		ets->prio_tc[i] = i;
		ets->tc_tsa[i] = IEEE_8021QAZ_TSA_ETS;
		ets->tc_tx_bw[i] = i < 4 ? 13 : 12;
	}
}

static int get_ets(struct net_device *netdev, struct ieee_ets *ets)
{
	*ets = to_fake(netdev)->ets;
	return 0;
}

static int set_ets(struct net_device *netdev, struct ieee_ets *ets)
{
	to_fake(netdev)->ets = *ets;
	return 0;
}

static int get_buffer(struct net_device *netdev, struct dcbnl_buffer *buffer)
{
	buffer->prio2buffer[LOSSLESS] = 1;
	buffer->buffer_size[0] = 20016;
	buffer->buffer_size[1] = 156000;
	buffer->total_size = 176016;
	return 0;
}

static u8 get_dcbx(struct net_device *netdev)
{
	return DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
static int get_app_trust(struct net_device *netdev, u8 *selectors, int *n)
{
	selectors[0] = to_fake(netdev)->trust;
	*n = 1;
	return 0;
}
#endif

static const struct dcbnl_rtnl_ops fake_dcb_ops = {
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc,
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.getdcbx = get_dcbx,
	.dcbnl_getbuffer = get_buffer,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	.dcbnl_getapptrust = get_app_trust,
#endif
};

static void get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, "mlx5_core", sizeof(info->driver));
	strscpy(info->fw_version, "28.43.1014 (MT_0000000838)", sizeof(info->fw_version));
	strscpy(info->bus_info, dev_name(netdev->dev.parent), sizeof(info->bus_info));
}

static int get_link_ksettings(struct net_device *netdev, struct ethtool_link_ksettings *ks)
{
	bool up = netif_running(netdev) && netif_carrier_ok(netdev);
	struct fake *f = to_fake(netdev);

	f->ethtool_calls++;
	if (f->ethtool_stall)
		msleep(f->ethtool_stall * MSEC_PER_SEC);
	ks->base.speed = up ? f->mbps : SPEED_UNKNOWN;
	ks->base.duplex = up ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	ks->base.port = PORT_FIBRE;
	ks->lanes = up ? 4 : 0;
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static void get_link_ext_stats(struct net_device *netdev, struct ethtool_link_ext_stats *stats)
{
	stats->link_down_events = to_fake(netdev)->link_down_events;
}
#endif

/* Asked whether the link is up or not; it says why while it is down. */
static int get_link_ext_state(struct net_device *netdev, struct ethtool_link_ext_state_info *info)
{
	struct fake *f = to_fake(netdev);

	if (!f->ext_state || netif_carrier_ok(netdev))
		return -ENODATA;
	info->link_ext_state = f->ext_state - 1;
	info->__link_ext_substate = f->ext_substate;
	return 0;
}

static void get_pause(struct net_device *netdev, struct ethtool_pauseparam *pause)
{
	pause->rx_pause = 1;
	pause->tx_pause = 1;
}

static void get_pause_stats(struct net_device *netdev, struct ethtool_pause_stats *stats)
{
	stats->rx_pause_frames = to_fake(netdev)->pause[0];
	stats->tx_pause_frames = to_fake(netdev)->pause[1];
}

static int get_fec(struct net_device *netdev, struct ethtool_fecparam *fec)
{
	fec->fec = ETHTOOL_FEC_RS;
	fec->active_fec = ETHTOOL_FEC_RS;
	return 0;
}

static void get_fec_stats(struct net_device *netdev, struct ethtool_fec_stats *stats)
{
	stats->corrected_blocks.total = to_fake(netdev)->fec[0];
	stats->uncorrectable_blocks.total = to_fake(netdev)->fec[1];
}

static int get_sset_count(struct net_device *netdev, int set)
{
	int i, n = 0;

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	for (i = 0; i < NUM_STATS; i++)
		n += stat_shown(to_fake(netdev), i);
	return n;
}

static void get_strings(struct net_device *netdev, u32 set, u8 *names)
{
	int i;

	for (i = 0; i < NUM_STATS; i++) {
		if (!stat_shown(to_fake(netdev), i))
			continue;
		stat_name(i, names);
		names += ETH_GSTRING_LEN;
	}
}

static void get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *values)
{
	int i;

	for (i = 0; i < NUM_STATS; i++)
		if (stat_shown(to_fake(netdev), i))
			*values++ = to_fake(netdev)->ethtool[i];
}

static int get_module_info(struct net_device *netdev, struct ethtool_modinfo *info)
{
	struct fake *f = to_fake(netdev);

	if (f->eeprom_errno)
		return -(int)f->eeprom_errno;
	/* As mlx5 has it, which knows nothing of CMIS here. */
	if (f->eeprom[0] != SFF8024_QSFP28)
		return -EINVAL;
	info->type = ETH_MODULE_SFF_8636;
	info->eeprom_len = ETH_MODULE_SFF_8636_MAX_LEN;
	return 0;
}

static int get_module_eeprom(struct net_device *netdev, struct ethtool_eeprom *want, u8 *data)
{
	struct fake *f = to_fake(netdev);

	if (f->eeprom_errno)
		return -(int)f->eeprom_errno;
	if (want->offset + want->len > sizeof(f->eeprom))
		return -EINVAL;
	memcpy(data, f->eeprom + want->offset, want->len);
	return 0;
}

/* The lower half first, then the upper halves of page 0, 1, …: offset counts from the start of the 256 visible bytes. */
static int get_module_eeprom_by_page(struct net_device *netdev, const struct ethtool_module_eeprom *want,
				     struct netlink_ext_ack *extack)
{
	struct fake *f = to_fake(netdev);
	u32 offset = want->offset + want->page * ETH_MODULE_EEPROM_PAGE_LEN;

	if (f->eeprom_errno)
		return -(int)f->eeprom_errno;
	if (want->i2c_address != 0x50 || want->bank || offset + want->length > sizeof(f->eeprom))
		return -EINVAL;
	memcpy(want->data, f->eeprom + offset, want->length);
	return want->length;
}

static const struct ethtool_ops fake_ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link_ksettings,
	.get_link_ext_state = get_link_ext_state,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	.get_link_ext_stats = get_link_ext_stats,
#endif
	.get_pauseparam = get_pause,
	.get_pause_stats = get_pause_stats,
	.get_fecparam = get_fec,
	.get_fec_stats = get_fec_stats,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
	.get_module_info = get_module_info,
	.get_module_eeprom = get_module_eeprom,
	.get_module_eeprom_by_page = get_module_eeprom_by_page,
};

static void fake_netdev_setup(struct net_device *netdev)
{
	ether_setup(netdev);
	netdev->max_mtu = 9978; /* as mlx5 with a hardware MTU of 10,000 */
	netdev->netdev_ops = &fake_netdev_ops;
	netdev->watchdog_timeo = HZ;
	netdev->ethtool_ops = &fake_ethtool_ops;
	netdev->dcbnl_ops = &fake_dcb_ops;
	eth_hw_addr_random(netdev);
}

int fake_netdev_add(struct fake *f, struct device *parent)
{
	int err = -ENOMEM;

	f->mbps = 400000;
	f->pfc_enabled = BIT(LOSSLESS);
	f->trust = 255;	/* DCB_APP_SEL_PCP, which 6.1 has not */
	default_ets(&f->ets);
	f->ethtool = kcalloc(NUM_STATS, sizeof(*f->ethtool), GFP_KERNEL);
	f->netdev = alloc_netdev(sizeof(f), "ens%df0np0", NET_NAME_ENUM, fake_netdev_setup);
	if (!f->ethtool || !f->netdev)
		goto free;
	*(struct fake **)netdev_priv(f->netdev) = f;
	SET_NETDEV_DEV(f->netdev, parent);
	err = register_netdev(f->netdev);
	if (err)
		goto free;
	return 0;

free:
	if (f->netdev)
		free_netdev(f->netdev);
	kfree(f->ethtool);
	return err;
}

void fake_netdev_remove(struct fake *f)
{
	unregister_netdev(f->netdev);
	free_netdev(f->netdev);
	kfree(f->ethtool);
}

static int carrier_get(void *data, u64 *value)
{
	*value = netif_carrier_ok(((struct fake *)data)->netdev);
	return 0;
}

static int carrier_set(void *data, u64 value)
{
	struct fake *f = data;

	if (value)
		netif_carrier_on(f->netdev);
	else
		netif_carrier_off(f->netdev);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(carrier_fops, carrier_get, carrier_set, "%llu\n");

static int tx_stopped_set(void *data, u64 value)
{
	if (value)
		netif_tx_stop_all_queues(((struct fake *)data)->netdev);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(tx_stopped_fops, NULL, tx_stopped_set, "%llu\n");

static int pfc_en_get(void *data, u64 *value)
{
	*value = ((struct fake *)data)->pfc_enabled;
	return 0;
}

/* rtnl, since the number of statistics depends on it. */
static int pfc_en_set(void *data, u64 value)
{
	rtnl_lock();
	((struct fake *)data)->pfc_enabled = value;
	rtnl_unlock();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(pfc_en_fops, pfc_en_get, pfc_en_set, "%llu\n");

static ssize_t eeprom_write(struct file *file, const char __user *data, size_t len, loff_t *offset)
{
	struct fake *f = file->private_data;

	return simple_write_to_buffer(f->eeprom, sizeof(f->eeprom), offset, data, len);
}

static const struct file_operations eeprom_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = eeprom_write,
	.llseek = default_llseek,
};

void fake_netdev_debugfs(struct fake *f)
{
	char name[ETH_GSTRING_LEN];
	struct dentry *dir;
	int i;

	dir = debugfs_create_dir("ethtool", f->debugfs);
	for (i = 0; i < NUM_STATS; i++) {
		stat_name(i, name);
		debugfs_create_u64(name, 0644, dir, &f->ethtool[i]);
	}
	debugfs_create_u32("speed_mbps", 0644, f->debugfs, &f->mbps);
	debugfs_create_u32("ethtool_stall", 0644, f->debugfs, &f->ethtool_stall);
	debugfs_create_u32("ethtool_calls", 0444, f->debugfs, &f->ethtool_calls);
	debugfs_create_u32("ext_state", 0644, f->debugfs, &f->ext_state);
	debugfs_create_u32("ext_substate", 0644, f->debugfs, &f->ext_substate);
	debugfs_create_u64("link_down_events", 0644, f->debugfs, &f->link_down_events);
	debugfs_create_u8("trust", 0644, f->debugfs, &f->trust);
	debugfs_create_file("pfc_en", 0644, f->debugfs, f, &pfc_en_fops);
	debugfs_create_u64("rx_pause_frames", 0644, f->debugfs, &f->pause[0]);
	debugfs_create_u64("tx_pause_frames", 0644, f->debugfs, &f->pause[1]);
	debugfs_create_u64("fec_corrected", 0644, f->debugfs, &f->fec[0]);
	debugfs_create_u64("fec_uncorrectable", 0644, f->debugfs, &f->fec[1]);
	for (i = 0; i < PRIORITIES; i++) {
		snprintf(name, sizeof(name), "pfc_requests%d", i);
		debugfs_create_u64(name, 0644, f->debugfs, &f->pfc_requests[i]);
		snprintf(name, sizeof(name), "pfc_indications%d", i);
		debugfs_create_u64(name, 0644, f->debugfs, &f->pfc_indications[i]);
	}
	debugfs_create_file("tx_stopped", 0200, f->debugfs, f, &tx_stopped_fops);
	debugfs_create_file("carrier", 0644, f->debugfs, f, &carrier_fops);
	debugfs_create_file("eeprom", 0200, f->debugfs, f, &eeprom_fops);
	debugfs_create_u32("eeprom_errno", 0644, f->debugfs, &f->eeprom_errno);
}
