// SPDX-License-Identifier: GPL-2.0
/*
 * Lines of the kernel log: what is written to the debugfs file `log` is printed as the kernel's own, `log_times` times. What
 * follows a | is printed as a continuation of the line.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "fakerdma.h"

static u32 times = 1;

static ssize_t log_write(struct file *file, const char __user *data, size_t len, loff_t *offset)
{
	char *text, *rest;
	u32 i;

	if (len > 900)
		return -E2BIG;
	text = memdup_user_nul(data, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	rest = strim(text);
	text = strsep(&rest, "|");
	for (i = 0; i < times; i++) {
		if (rest) {
			printk(KERN_ERR "%s", text);
			printk(KERN_CONT "%s\n", rest);
		} else {
			printk(KERN_ERR "%s\n", text);
		}
		cond_resched();
	}
	kfree(text);
	return len;
}

static const struct file_operations log_fops = {
	.owner = THIS_MODULE,
	.write = log_write,
};

void fake_log_debugfs(struct dentry *dir)
{
	debugfs_create_file("log", 0200, dir, NULL, &log_fops);
	debugfs_create_u32("log_times", 0644, dir, &times);
}
