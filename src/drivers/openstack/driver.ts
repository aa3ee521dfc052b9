import type { DriverDefinition } from '../kit/driver-definition.ts';
import { readCloud } from './clouds.ts';
import { type OpenStackConfig, openstackConfigSchema, openstackOfferSchema } from './options.ts';

/**
 * Machines of a project in an OpenStack cloud: servers of Nova, with ports of Neutron and volumes of Cinder. The code
 * that connects to the cloud is loaded when the driver is opened.
 */
export const openstack: DriverDefinition<OpenStackConfig> = {
  name: 'openstack',
  about: {
    provedOn:
      'the services of OpenStack Zed (Keystone 22, Nova 26, Neutron 21, Glance 25, Placement 8, Cinder 21), with Nova’s ' +
      'fake hypervisor and with QEMU 7.2 under libvirt 9.0',
    provedBy: [
      'test/lab/openstack/driver.lab.test.ts',
      'test/lab/openstack/serve.lab.test.ts',
      'test/lab/openstack/how-to.lab.test.ts',
      'src/drivers/openstack/driver.test.ts',
      'src/drivers/openstack/behind.test.ts',
    ],
    traps: [
      'GPUs, Cinder with a storage system, floating IPs that route and an agent of Neutron were not tried.',
      'Without `project` in the configuration, volumes read as gone with a credential of another project. Machines do not.',
      'A machine that is stopped and shelved still counts in the quota of its project.',
      'Without an administrator’s rights, Berth sees the quota but not the room of the hosts: a create may fail.',
      'With `on_stop: release` a stop copies the disk into an image of Glance, unless the offer has a `boot_volume`: that takes time.',
      'A server deleted while its host is down leaves its disk there until the host is back.',
      'If a create request arrives after its repeat, Nova makes a second server on the port: it fails, and is removed.',
    ],
    guide: 'how-to/openstack.md',
  },
  async manifests() {
    const { manifest } = await import('./open.ts');
    return [{ manifest }];
  },
  configSchema: openstackConfigSchema,
  fileKeys: ['clouds_file'],
  offerSchema: openstackOfferSchema,
  placesOnHosts: true,
  check(options, { env }) {
    readCloud(options, env);
  },
  async *diagnose(options, { catalog, clock, env, asking }) {
    const { diagnose } = await import('./diagnose.ts');
    yield* diagnose(options, catalog, { cloud: readCloud(options, env), asking, now: () => clock.now() });
  },
  async open(options, setting) {
    const { openOpenStack } = await import('./open.ts');
    return openOpenStack(
      options,
      { cloud: readCloud(options, setting.env), asking: setting.asking },
      setting,
    );
  },
};
