"""What the lab gives the services: a network, a hypervisor and a volume store that need no kernel module."""
