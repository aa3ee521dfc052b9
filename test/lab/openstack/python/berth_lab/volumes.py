"""Cinder volumes as sparse files. A connection to one is for the fake hypervisor, which takes any."""

import os
import shutil

from cinder import interface
from cinder.image import image_utils
from cinder.volume import driver
from oslo_config import cfg

OPTIONS = [cfg.StrOpt('berth_lab_folder')]


@interface.volumedriver
class FileDriver(driver.VolumeDriver):
    VERSION = '1.0'

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTIONS)

    def _path(self, one):
        return os.path.join(self.configuration.berth_lab_folder, one.name)

    def local_path(self, volume):
        return self._path(volume)

    def do_setup(self, context):
        os.makedirs(self.configuration.berth_lab_folder, exist_ok=True)

    def check_for_setup_error(self):
        pass

    def _update_volume_stats(self):
        used = sum(os.path.getsize(each.path) for each in os.scandir(self.configuration.berth_lab_folder))
        self._stats = {
            'volume_backend_name': 'files', 'vendor_name': 'Berth', 'driver_version': self.VERSION,
            'storage_protocol': 'file', 'total_capacity_gb': 500,
            'free_capacity_gb': max(0, 500 - used // 2**30), 'reserved_percentage': 0,
            'multiattach': True,
        }

    def create_volume(self, volume):
        with open(self._path(volume), 'wb') as file:
            file.truncate(volume.size * 2**30)

    def delete_volume(self, volume):
        self._remove(volume)

    def extend_volume(self, volume, new_size):
        os.truncate(self._path(volume), new_size * 2**30)

    def create_snapshot(self, snapshot):
        shutil.copyfile(self._path(snapshot.volume), self._path(snapshot))

    def delete_snapshot(self, snapshot):
        self._remove(snapshot)

    def create_volume_from_snapshot(self, volume, snapshot):
        shutil.copyfile(self._path(snapshot), self._path(volume))
        self.extend_volume(volume, volume.size)

    def create_cloned_volume(self, volume, src_vref):
        shutil.copyfile(self._path(src_vref), self._path(volume))
        self.extend_volume(volume, volume.size)

    def copy_image_to_volume(self, context, volume, image_service, image_id):
        image_utils.fetch_to_raw(
            context, image_service, image_id, self._path(volume), '1M', size=volume.size, run_as_root=False)
        self.extend_volume(volume, volume.size)

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        image_utils.upload_volume(context, image_service, image_meta, self._path(volume), run_as_root=False)

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector, **kwargs):
        return {'driver_volume_type': 'local', 'data': {'device_path': self._path(volume)}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass

    def _remove(self, one):
        if os.path.exists(self._path(one)):
            os.remove(self._path(one))
