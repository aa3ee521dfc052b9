"""Nova's fake hypervisor as a small host. Its machines outlive the service, and snapshots have data."""

import io
import json
import os

from nova import conf
from nova.image import glance
from nova.virt import fake


class LabHypervisor(fake.FakeDriver):
    vcpus = 8
    memory_mb = 16384
    local_gb = 200

    def init_host(self, host):
        super().init_host(host)
        self._file = os.path.join(conf.CONF.state_path, 'machines.json')
        if os.path.exists(self._file):
            with open(self._file) as file:
                for uuid, name, state in json.load(file):
                    self.instances[uuid] = fake.FakeInstance(name, state, uuid)

    def keep(self):
        with open(f'{self._file}.new', 'w') as file:
            json.dump([(uuid, one.name, one.state) for uuid, one in self.instances.items()], file)
        os.replace(f'{self._file}.new', self._file)

    def snapshot(self, context, instance, image_id, update_task_state):
        super().snapshot(context, instance, image_id, update_task_state)
        image = {'disk_format': 'raw', 'container_format': 'bare', 'properties': {}}
        glance.API().update(context, image_id, image, io.BytesIO(b'the disk of ' + instance.uuid.encode()))


def _kept(method):
    def call(self, *args, **kwargs):
        result = method(self, *args, **kwargs)
        self.keep()
        return result
    return call


for name in ('spawn', 'destroy', 'power_off', 'power_on', 'unrescue', 'finish_revert_migration'):
    setattr(LabHypervisor, name, _kept(getattr(fake.FakeDriver, name)))
