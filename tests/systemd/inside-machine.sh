#!/bin/sh
# SPDX-License-Identifier: MIT
# Boots a system manager over a throw-away copy of the file system: for what happens without a login.
# Runs as the first process of namespaces of its own; see manager.py.
#
#	inside-machine.sh DIRECTORY UID STAGE
set -eu
dir=$1 uid=$2 stage=$3 layer=$1/layer
root=$layer/root

mount -n --make-rprivate /
mkdir -p "$layer"
mount -n -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$root"
mount -n -t overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" overlay "$root"

# The kernel's file systems, of which a container may write to little.
mount -n -t proc proc "$root/proc"
mount -n --bind "$root/proc/sys" "$root/proc/sys"
mount -n -o remount,bind,ro "$root/proc/sys"
mount -n -t sysfs -o ro sysfs "$root/sys"
mount -n -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -n -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
for device in null zero full random urandom tty; do
	: >"$root/dev/$device"
	mount -n --bind "/dev/$device" "$root/dev/$device"
done
mount -n -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -n -t tmpfs tmpfs "$root/dev/shm"
mount -n -t tmpfs -o mode=755 tmpfs "$root/run"
mount -n -t tmpfs tmpfs "$root/tmp"

# The staged files; no service of the machine's own, and none that needs its hardware or its network.
cp -a "$stage/." "$root/"
rm -rf "$root"/etc/systemd/system/*.wants "$root/var/log/journal"
mkdir -p "$root/var/log/journal"
for name in systemd-udevd systemd-udev-trigger systemd-sysctl systemd-modules-load systemd-timesyncd; do
	ln -sf /dev/null "$root/etc/systemd/system/$name.service"
done
cat >"$root/etc/systemd/system/test.target" <<END
[Unit]
Requires=basic.target dbus.socket systemd-logind.service
After=basic.target systemd-logind.service
END
useradd -R "$root" -m -u "$uid" -s /bin/sh mcptest
exec chroot "$root" env -i container=mcp-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	/lib/systemd/systemd --system --unit=test.target --log-target=journal --show-status=no
