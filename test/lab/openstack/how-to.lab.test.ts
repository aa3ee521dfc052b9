import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { blocksOf, commandsOf, readPage } from '../../documents/pages.ts';
import { BerthProcess, runBerth } from '../../support/processes/process.ts';
import { GUESTS } from '../libvirt/lab-host.ts';
import { Cloud } from './cloud.ts';
import { authUrl, SECRET, SITE } from './settings.ts';

const page = readPage('docs/how-to/openstack.md');
const [ofClouds = '', ofBerth = ''] = blocksOf('yaml', page);
const catalog = `regions:
  fra: {name: Frankfurt, country_code: DE, datacenter: fra1}
offers:
  - {id: small, name: small, instance_type: DEDICATED, vcpus: 1, memory_gb: 0.25, storage_gb: 1, price_per_hour: 0.01,
     os_options: [ubuntu-24.04], supports_cloud_init: true, capacity: {fra: 2}, machine: {flavor: small}}
`;

/** The lab has a project `berth` and a network `tenants` of its own: those of the reader are called `reader`. */
const inTheLab = (text: string): string =>
  text
    .replaceAll(/\b(berth|tenants)\b(?!\.)/g, 'reader')
    .replace('--password-prompt', `--password ${SECRET}`)
    .replaceAll(/(--external-gateway|floating_network:) public/g, '$1 outside');

let cloud: Cloud;
beforeAll(async () => {
  cloud = await Cloud.start();
});
afterAll(() => cloud?.[Symbol.asyncDispose]());

/** Types a command as a user of the cloud, in the folder of the site. */
async function type(user: string, project: string, command: string): Promise<string> {
  const environment = {
    ...{ OS_AUTH_URL: authUrl, OS_IDENTITY_API_VERSION: '3', OS_USERNAME: user, OS_PASSWORD: SECRET },
    ...{ OS_PROJECT_NAME: project, OS_USER_DOMAIN_NAME: 'Default', OS_PROJECT_DOMAIN_NAME: 'Default' },
  };
  const named = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return cloud.site.run('env', ...named, 'sh', '-c', `cd ${SITE} && ${command}`);
}

it('a cloud that the how-to has set up passes berth doctor and berth driver test [openstack-how-to]', async () => {
  const { folder } = cloud.site;
  copyFileSync(join(GUESTS, 'tiny.qcow2'), join(folder, 'noble-server-cloudimg-amd64.img'));
  const commands = blocksOf('sh', page).flatMap(commandsOf).map(inTheLab);
  const ofOwner = (command: string) => command.includes('application credential');
  for (const command of commands.filter((one) => !ofOwner(one))) await type('admin', 'admin', command);
  const created = await type('reader', 'reader', commands.find(ofOwner) ?? '');
  const shown = (field: string): string =>
    new RegExp(`^\\| ${field} +\\| (\\S+)`, 'm').exec(created)?.[1] ?? '';

  const clouds = ofClouds
    .replace(/(_credential_id:) .*/, `$1 ${shown('id')}`)
    .replace(/(_credential_secret:) .*/, `$1 ${shown('secret')}`)
    .replace(/(auth_url:) .*/, `$1 ${authUrl}`);
  writeFileSync(join(folder, 'clouds.yaml'), clouds, { mode: 0o600 });
  writeFileSync(join(folder, 'catalog.yaml'), catalog);
  const config = join(folder, 'berth.yaml');
  const project = (await type('admin', 'admin', 'openstack project show reader -f value -c id')).trim();
  const settings = inTheLab(ofBerth).replace(/( project:) \S+/, `$1 ${project}`);
  writeFileSync(config, `database: sqlite:berth.db\n${settings}`);

  const doctor = await runBerth(['doctor', '--config', config]);
  expect(doctor.stdout).not.toContain('BROKEN');
  expect(doctor.code, doctor.stderr).toBe(0);
  // Nova's fake hypervisor boots no guest, so no check of these logs in.
  const only = ['create', 'create-adopts', 'stop-start', 'restart', 'endpoint', 'destroy', 'volume-attach'];
  const args = ['driver', 'test', '--config', config, '--patience-s', '900', '--only', only.join(',')];
  // It takes longer than a command may.
  await using testing = new BerthProcess(args);
  const tested = await testing.ended;
  expect(tested.stdout).toContain(`${only.length + 1} ok, 0 warnings, 0 broken.`);
  expect(tested.code).toBe(0);
  const left = ['server', 'volume', 'floating ip'].map((kind) => `openstack ${kind} list -f value`);
  expect(await type('reader', 'reader', left.join(' && '))).toBe('');
  expect(await type('reader', 'reader', 'openstack port list -f value')).not.toContain('berth-test');
});
