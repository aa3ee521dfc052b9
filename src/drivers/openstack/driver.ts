import type { DriverDefinition } from '../kit/driver-definition.ts';
import { about } from './about.ts';
import { readCloud } from './clouds.ts';
import { type OpenStackConfig, openstackConfigSchema, openstackOfferSchema } from './options.ts';

/**
 * Machines of a project in an OpenStack cloud: servers of Nova, with ports of Neutron and volumes of Cinder. The code
 * that connects to the cloud is loaded when the driver is opened.
 */
export const openstack: DriverDefinition<OpenStackConfig> = {
  name: 'openstack',
  about,
  async manifests() {
    const { manifest } = await import('./open.ts');
    return [{ manifest }];
  },
  configSchema: openstackConfigSchema,
  fileKeys: ['clouds_file'],
  offerSchema: openstackOfferSchema,
  placesOnHosts: true,
  imageAdvice:
    'Use `openstack image create --disk-format qcow2 --file FILE NAME`, with the name that platform.images gives to the image.',
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
