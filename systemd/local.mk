# SPDX-License-Identifier: MIT

# One text gives the unit of the default namespace and the template of all others.
systemduserunit_DATA = \
	systemd/ipython-mcpd.socket systemd/ipython-mcpd.service \
	systemd/ipython-mcpd@.socket systemd/ipython-mcpd@.service
EXTRA_DIST += systemd/ipython-mcpd.socket.in systemd/ipython-mcpd.service.in
CLEANFILES += $(systemduserunit_DATA)

unit_sed = $(AM_V_GEN)$(MKDIR_P) systemd && $(SED) -e 's|[@]bindir@|$(bindir)|g'
unit_default = -e 's|[@]namespace@|default|g' -e 's|[@]instance@||g'
unit_template = -e 's|[@]namespace@|%i|g' -e 's|[@]instance@|@%i|g'

systemd/ipython-mcpd.socket: $(srcdir)/systemd/ipython-mcpd.socket.in Makefile
	$(unit_sed) $(unit_default) $(srcdir)/systemd/ipython-mcpd.socket.in >$@
systemd/ipython-mcpd.service: $(srcdir)/systemd/ipython-mcpd.service.in Makefile
	$(unit_sed) $(unit_default) $(srcdir)/systemd/ipython-mcpd.service.in >$@
systemd/ipython-mcpd@.socket: $(srcdir)/systemd/ipython-mcpd.socket.in Makefile
	$(unit_sed) $(unit_template) $(srcdir)/systemd/ipython-mcpd.socket.in >$@
systemd/ipython-mcpd@.service: $(srcdir)/systemd/ipython-mcpd.service.in Makefile
	$(unit_sed) $(unit_template) $(srcdir)/systemd/ipython-mcpd.service.in >$@
