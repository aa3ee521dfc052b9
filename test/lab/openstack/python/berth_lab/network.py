"""Binds each port as one of a Linux bridge, without an agent on the host."""

from neutron_lib.api.definitions import portbindings
from neutron_lib import constants
from neutron_lib.plugins.ml2 import api


class BridgeMechanism(api.MechanismDriver):
    def initialize(self):
        pass

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            details = {
                portbindings.CAP_PORT_FILTER: False,
                portbindings.VIF_DETAILS_BRIDGE_NAME: 'tenants',
                portbindings.VIF_DETAILS_CONNECTIVITY: self.connectivity,
            }
            context.set_binding(
                segment[api.ID], portbindings.VIF_TYPE_BRIDGE, details,
                status=constants.PORT_STATUS_ACTIVE)
            return
