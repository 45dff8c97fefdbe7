#!/bin/sh
# SPDX-License-Identifier: MIT
# Becomes a user's service manager. Runs in mount and cgroup namespaces of its own; see manager.py.
#
#	inside-user.sh DIRECTORY UID STAGE PREFIX
set -eu
dir=$1 uid=$2 stage=$3 prefix=$4
cgroups=/sys/fs/cgroup unit=user.slice/user-$uid.slice/user@$uid.service

mount -n --make-rprivate /

# A cgroup tree of version 2 that begins at our own group. Over a mount of the same kind it would be
# refused, so there is a tmpfs between.
mount -n -t tmpfs tmpfs $cgroups
mount -n -t cgroup2 cgroup2 $cgroups

# The staged files over the real ones, and no units but theirs and the distribution's.
mount -n -t overlay -o "lowerdir=$stage$prefix:$prefix" overlay "$prefix"
[ ! -d /etc/systemd/user ] || mount -n -t tmpfs -o mode=755 tmpfs /etc/systemd/user

# An account, for those who ask for the name.
{ cat /etc/passwd; echo "mcptest:x:$uid:$uid::$dir/home:/bin/sh"; } >"$dir/passwd"
{ cat /etc/group; echo "mcptest:x:$uid:"; } >"$dir/group"
mount -n --bind "$dir/passwd" /etc/passwd
mount -n --bind "$dir/group" /etc/group

# What says that systemd booted this machine, kept off the machine itself. The user's directory must be
# a tmpfs, as it is everywhere.
mount -n -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/systemd/unit-root /run/systemd/journal /run/systemd/journald.conf.d \
	"/run/user/$uid"
mount -n -t tmpfs -o "mode=700,uid=$uid,gid=$uid" tmpfs "/run/user/$uid"

# A journal of its own: on disk, because a user's own journal is, and deaf to the kernel's log.
mount -n -t tmpfs -o mode=755 tmpfs /var/log
mkdir /var/log/journal
mount -n --bind "$dir/journal" /var/log/journal
: >/run/systemd/journal/flushed
cat >/run/systemd/journald.conf.d/test.conf <<END
[Journal]
Storage=persistent
ReadKMsg=no
Audit=
ForwardToSyslog=no
ForwardToWall=no
RateLimitIntervalSec=0
END
mkdir -p "$cgroups/journald" "$cgroups/$unit"
(echo 0 >$cgroups/journald/cgroup.procs; exec /lib/systemd/systemd-journald) &
until [ -S /run/systemd/journal/stdout ]; do kill -0 $!; sleep 0.05; done

# The manager's place is what it has after a login: journald tells the units' owner by it.
echo 0 >"$cgroups/$unit/cgroup.procs"
for group in . user.slice "user.slice/user-$uid.slice"; do
	for controller in cpu memory pids; do
		{ echo "+$controller" >"$cgroups/$group/cgroup.subtree_control"; } 2>/dev/null || :
	done
done
chown "$uid" "$cgroups/$unit" "$cgroups/$unit/cgroup.procs" "$cgroups/$unit/cgroup.threads" \
	"$cgroups/$unit/cgroup.subtree_control"
cd /
exec env -i PATH=/usr/bin:/bin HOME="$dir/home" USER=mcptest LOGNAME=mcptest SHELL=/bin/sh \
	XDG_RUNTIME_DIR="/run/user/$uid" setpriv --reuid "$uid" --regid "$uid" --clear-groups \
	/lib/systemd/systemd --user --log-target=journal
