import { expect, it } from 'vitest';
import { createInstanceRequestSchema } from '../../contract/instance.ts';
import { toProviderName } from '../model/names.ts';
import { toLaunchRequest } from './plan-deployment.ts';

const deploymentId = `dep-${'0123456789abcdef'.repeat(2)}`;
const wanted = {
  providerName: toProviderName('00c0ffee', deploymentId),
  offerId: 'gpu-1',
  region: 'eu-one',
  image: 'ubuntu-24.04',
  publicKey: 'ssh-ed25519 AAAA',
  cloudInit: undefined,
  providerVolumeIds: [],
};

it('gives the provider a name unique to this marketplace, in lower case and at most 63 characters', () => {
  expect(wanted.providerName).toBe('bm-00c0ffee-0123456789abcdef0123456789abcdef');
  expect(wanted.providerName).toMatch(/^[a-z0-9-]{1,63}$/);
});

it('sends only the requested fields', () => {
  const request = toLaunchRequest(wanted);
  expect(request).toEqual({
    configuration_id: 'gpu-1',
    region: 'eu-one',
    ssh_keys: ['ssh-ed25519 AAAA'],
    name: wanted.providerName,
    operating_system_image: 'ubuntu-24.04',
  });
  expect(createInstanceRequestSchema.parse(request)).toEqual(request);
});

it('omits the image where the provider names none, so that the default applies', () => {
  expect(toLaunchRequest({ ...wanted, image: null })).not.toHaveProperty('operating_system_image');
});

it('maps cloudInit to the field of the provider, and lists the volumes [launch-request-cloud-init]', () => {
  const writeFiles = [{ path: '/etc/motd', content: 'hi', owner: 'root:root', permissions: '0644' }];
  const request = toLaunchRequest({
    ...wanted,
    cloudInit: { runcmd: ['true'], packages: ['htop'], writeFiles },
    providerVolumeIds: ['pv-1', 'pv-2'],
  });
  expect(request.cloud_init).toEqual({ runcmd: ['true'], packages: ['htop'], write_files: writeFiles });
  expect(request.volume_ids).toEqual(['pv-1', 'pv-2']);
  expect(createInstanceRequestSchema.parse(request)).toEqual(request);
});
