#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Debian package: built from a copy of the sources, looked at by lintian, installed into a scratch root,
used there, and removed again."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paths  # noqa: E402
import tap  # noqa: E402
from harness import Client, Place, Stream  # noqa: E402

_built = None


def run(command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    assert done.returncode == 0, (command, (done.stdout + done.stderr)[-6000:])
    return done.stdout


def copy_sources(to):
    """What a clone or a release holds, without builds."""
    if os.path.exists(os.path.join(paths.SRCDIR, ".git")):
        names = run(["git", "-c", "safe.directory=*", "-C", paths.SRCDIR, "ls-files", "-z"]).split("\0")[:-1]
        for name in names:
            source, target = os.path.join(paths.SRCDIR, name), os.path.join(to, name)
            if os.path.lexists(source):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        return
    shutil.copytree(paths.SRCDIR, to, symlinks=True, dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("build", "build-check*", "_build"))


def package():
    """The package and the report on it, built once."""
    global _built
    for program in ("dpkg-buildpackage", "dh", "lintian"):
        if not shutil.which(program):
            raise tap.Skip(f"{program} is not installed")
    if not os.path.exists(os.path.join(paths.SRCDIR, "debian", "control")):
        raise tap.Skip("these sources have no debian folder")
    if _built is None:
        directory = tempfile.TemporaryDirectory(prefix="mcp-debian-")
        sources = os.path.join(directory.name, "ipython-mcp-0.1.0")
        os.mkdir(sources)
        copy_sources(sources)
        environment = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
        environment.update(LC_ALL="C.UTF-8", DEB_BUILD_OPTIONS="nocheck parallel=2")
        run(["dpkg-buildpackage", "-us", "-uc", "-b"], cwd=sources, env=environment)
        _built = directory
    return glob.glob(os.path.join(_built.name, "ipython-mcp_*.deb"))[0]


def test_builds():
    """dpkg-buildpackage builds a package that needs what it needs"""
    fields = run(["dpkg-deb", "-f", package()])
    for name in ("libevent", "libjansson4", "libsystemd0", "libpython3", "python3-ipython"):
        assert name in fields.split("Depends:")[1].split("\n")[0], fields
    names = run(["dpkg-deb", "-c", package()])
    for name in ("/usr/bin/ipython-mcpd", "/usr/lib/systemd/user/ipython-mcpd@.socket",
                 "/usr/share/man/man8/ipython-mcpd.8.gz", "/usr/share/bash-completion/completions/ipython-mcp",
                 "/usr/share/ipython-mcp/skills/ipython-mcp/SKILL.md"):
        assert name in names, name
    assert ".la" not in names.replace(".lang", "")


def test_lintian():
    """lintian finds no error and no warning"""
    changes = glob.glob(os.path.join(os.path.dirname(package()), "*.changes"))[0]
    # The maintainer's address is in .invalid on purpose: who publishes a package puts in their own.
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags",
        "bogus-mail-host,bogus-mail-host-in-debian-changelog", changes], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# Lays the scratch root's /usr over the machine's, in a mount namespace, and runs a session there.
USE = """
set -eu
mount --make-rprivate /
mount -t overlay -o "lowerdir=$1/usr:/usr" overlay /usr
exec ipython-mcp-connect --profile text
"""


def test_install_use_remove():
    """the package installs into a scratch root, works from there, and leaves nothing when it is purged"""
    if os.geteuid() != 0:
        raise tap.Skip("a scratch root takes root")
    deb = package()
    with tempfile.TemporaryDirectory(prefix="mcp-root-") as root, Place() as place:
        os.makedirs(os.path.join(root, "var/lib/dpkg/info"))
        os.makedirs(os.path.join(root, "var/lib/dpkg/updates"))
        open(os.path.join(root, "var/lib/dpkg/status"), "w").close()
        dpkg = ["dpkg", "--root=" + root, "--force-depends", "--force-not-root", "--force-script-chrootless"]
        run([*dpkg, "--install", deb])
        assert os.path.exists(os.path.join(root, "usr/bin/ipython-mcpd"))

        command = ["unshare", "--mount", "sh", "-c", USE, "sh", root]
        with Client(Stream.to_program(command, place.environment(), place.root)) as client:
            client.profile = "text"
            client.open()
            assert client.execute("x = 6\nx * 7").strip() == "42"
            inside = ["nsenter", "-t", str(client.stream.process.pid), "-m", "ipython-mcp"]
            assert "default" in run([*inside, "list"], env=place.environment())
            assert run([*inside, "exec", "x"], env=place.environment()).strip() == "6"

        run([*dpkg, "--purge", "ipython-mcp"])
        left = [os.path.join(d, n) for d, _, names in os.walk(root) for n in names if "/var/lib/dpkg" not in d]
        assert not left, left


if __name__ == "__main__":
    tap.main()
