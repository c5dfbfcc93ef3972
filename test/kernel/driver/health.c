// SPDX-License-Identifier: GPL-2.0
/* What a device tells of its own health: the temperature of its chip by hwmon, and the reporters fw and fw_fatal of devlink, as mlx5 has them. */
#include <linux/hwmon.h>
#include <net/devlink.h>

#include "fakerdma.h"

static umode_t temp_visible(const void *data, enum hwmon_sensor_types type, u32 attr, int channel)
{
	return 0444;
}

static int temp_read(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel, long *value)
{
	struct fake *f = dev_get_drvdata(dev);

	*value = (s32)(attr == hwmon_temp_crit ? f->temperature_critical : f->temperature);
	return 0;
}

static int temp_label(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel, const char **label)
{
	*label = "asic";
	return 0;
}

static const struct hwmon_ops temp_ops = { .is_visible = temp_visible, .read = temp_read, .read_string = temp_label };

static const struct hwmon_channel_info *temp_info[] = {
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT | HWMON_T_CRIT | HWMON_T_LABEL),
	NULL
};

static const struct hwmon_chip_info temp_chip = { .ops = &temp_ops, .info = temp_info };

/* fw stays in error until somebody sets it right; fw_fatal recovers at once. */
static int fatal_recover(struct devlink_health_reporter *reporter, void *context, struct netlink_ext_ack *extack)
{
	return 0;
}

static const struct devlink_health_reporter_ops fw_ops = { .name = "fw" };
static const struct devlink_health_reporter_ops fatal_ops = { .name = "fw_fatal", .recover = fatal_recover };
static const struct devlink_ops no_ops;

int fake_health_add(struct fake *f)
{
	struct device *dev = &f->pdev->dev;
	int err;

	f->temperature = 55000;
	f->temperature_critical = 105000;
	f->hwmon = hwmon_device_register_with_info(dev, "mlx5", f, &temp_chip, NULL);
	if (IS_ERR(f->hwmon))
		return PTR_ERR(f->hwmon);

	f->devlink = devlink_alloc(&no_ops, 0, dev);
	if (!f->devlink) {
		err = -ENOMEM;
		goto hwmon;
	}
	f->fw = devlink_health_reporter_create(f->devlink, &fw_ops, 0, f);
	if (IS_ERR(f->fw)) {
		err = PTR_ERR(f->fw);
		goto devlink;
	}
	f->fw_fatal = devlink_health_reporter_create(f->devlink, &fatal_ops, 0, f);
	if (IS_ERR(f->fw_fatal)) {
		err = PTR_ERR(f->fw_fatal);
		goto fw;
	}
	devlink_register(f->devlink);
	return 0;

fw:
	devlink_health_reporter_destroy(f->fw);
devlink:
	devlink_free(f->devlink);
hwmon:
	hwmon_device_unregister(f->hwmon);
	return err;
}

void fake_health_remove(struct fake *f)
{
	devlink_unregister(f->devlink);
	devlink_health_reporter_destroy(f->fw_fatal);
	devlink_health_reporter_destroy(f->fw);
	devlink_free(f->devlink);
	hwmon_device_unregister(f->hwmon);
}

static int fw_error_set(void *data, u64 value)
{
	struct fake *f = data;

	if (value)
		devlink_health_report(f->fw, "written to debugfs", f);
	else
		devlink_health_reporter_state_update(f->fw, DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(fw_error_fops, NULL, fw_error_set, "%llu\n");

static int fw_fatal_set(void *data, u64 value)
{
	struct fake *f = data;

	while (value--)
		devlink_health_report(f->fw_fatal, "written to debugfs", f);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(fw_fatal_fops, NULL, fw_fatal_set, "%llu\n");

void fake_health_debugfs(struct fake *f)
{
	debugfs_create_u32("temperature", 0644, f->debugfs, &f->temperature);
	debugfs_create_u32("temperature_critical", 0644, f->debugfs, &f->temperature_critical);
	debugfs_create_file("fw_error", 0200, f->debugfs, f, &fw_error_fops);
	debugfs_create_file("fw_fatal", 0200, f->debugfs, f, &fw_fatal_fops);
}
