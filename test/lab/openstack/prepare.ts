import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Api, userOf } from './api.ts';
import { computes, flavors, image, networks, owner } from './catalog.ts';
import { Operator } from './operator.ts';
import { Site, TEMPLATE } from './services.ts';
import { authUrl, database, databases, region, SECRET, urlOf } from './settings.ts';

/**
 * Sets the services up once, and keeps their databases and files for the sites of the tests.
 * usage: node prepare.ts, in namespaces of its own
 */
const site = await Site.open(Object.keys(computes));
const began = Date.now();
const says = (what: string): void =>
  void process.stdout.write(`${((Date.now() - began) / 1000).toFixed(1)} s: ${what}\n`);

async function makeDatabases(): Promise<void> {
  await site.run(
    'mariadb-install-db',
    '--no-defaults',
    '--user=root',
    `--datadir=/srv/db`,
    '--auth-root-authentication-method=normal',
  );
  site.start('rabbitmq');
  site.start('mariadb');
  const sql = (text: string): Promise<string> =>
    site.run('mariadb', '--no-defaults', '-uroot', '-S', '/srv/mariadb.sock', '-e', text);
  await site.isSo('mariadb', () =>
    sql('select 1').then(
      () => true,
      () => false,
    ),
  );
  await sql(databases.map((name) => `create database ${name} character set utf8mb3;`).join(''));
  await sql(`create user lab@'%' identified by '${SECRET}'; grant all on *.* to lab@'%';`);
  says('databases are there');
  const manage =
    (program: string, config: string) =>
    (...args: string[]) =>
      site.run(program, '--config-file', `/srv/etc/${config}.conf`, ...args);
  const keystone = manage('keystone-manage', 'keystone');
  const nova = manage('nova-manage', 'nova');
  // Two at a time, for two cores.
  await Promise.all([
    (async () => {
      await keystone('db_sync');
      const asRoot = ['--keystone-user', 'root', '--keystone-group', 'root'];
      await keystone('fernet_setup', ...asRoot);
      await keystone('credential_setup', ...asRoot);
      const urls = ['public', 'internal', 'admin'].flatMap((name) => [`--bootstrap-${name}-url`, authUrl]);
      await keystone('bootstrap', '--bootstrap-password', SECRET, ...urls, '--bootstrap-region-id', region);
      await manage('glance-manage', 'glance')('db_sync');
      await manage('placement-manage', 'placement')('db', 'sync');
      await manage('cinder-manage', 'cinder')('db', 'sync');
      says('the tables of keystone, glance, placement and cinder are there');
    })(),
    (async () => {
      await nova('api_db', 'sync');
      await nova('cell_v2', 'map_cell0', '--database_connection', database('nova_cell0'));
      await nova('db', 'sync');
      await nova('cell_v2', 'create_cell', '--name', 'cell1');
      await manage('neutron-db-manage', 'neutron')('upgrade', 'heads');
      says('the tables of nova and neutron are there');
    })(),
  ]);
}

const catalog: [name: string, type: string, url: string][] = [
  ['glance', 'image', urlOf('glance')],
  ['placement', 'placement', urlOf('placement')],
  ['neutron', 'network', urlOf('neutron')],
  ['nova', 'compute', `${urlOf('nova-api')}/v2.1`],
  ['cinderv3', 'volumev3', `${urlOf('cinder-api')}/v3/$(project_id)s`],
];

async function fillCatalog(admin: Api): Promise<void> {
  for (const [name, type, url] of catalog) {
    const { service } = await admin.send('keystone', 'POST', '/services', { service: { name, type } });
    for (const endpoint of ['public', 'internal'])
      await admin.send('keystone', 'POST', '/endpoints', {
        endpoint: { service_id: service.id, interface: endpoint, region_id: region, url },
      });
  }
}

async function addUsers(admin: Api): Promise<string> {
  const roles = async (): Promise<{ id: string; name: string }[]> =>
    (await admin.send('keystone', 'GET', '/roles')).roles;
  if (!(await roles()).some(({ name }) => name === 'service'))
    await admin.send('keystone', 'POST', '/roles', { role: { name: 'service' } });
  const roleIds = new Map((await roles()).map(({ id, name }) => [name, id]));
  const grant = (project: string, user: string, role: string): Promise<unknown> =>
    admin.send('keystone', 'PUT', `/projects/${project}/users/${user}/roles/${roleIds.get(role)}`);
  const { users } = await admin.send('keystone', 'GET', '/users?name=admin');
  await grant(admin.project, users[0].id, 'service');
  const { project } = await admin.send('keystone', 'POST', '/projects', { project: { name: owner.project } });
  const { user } = await admin.send('keystone', 'POST', '/users', {
    user: { name: owner.user, password: SECRET, default_project_id: project.id },
  });
  await grant(project.id, user.id, 'member');
  // Its operator's administrator sees what it has as Berth does.
  await grant(project.id, users[0].id, 'admin');
  const own = userOf(owner.user, owner.project);
  const { application_credential } = await own.send(
    'keystone',
    'POST',
    `/users/${user.id}/application_credentials`,
    {
      application_credential: { name: 'berth', secret: SECRET, roles: [{ name: 'member' }] },
    },
  );
  writeFileSync(join(site.folder, 'application-credential'), application_credential.id);
  return project.id;
}

async function addNetworks(admin: Api, project: string): Promise<void> {
  const { network: tenants } = await admin.send('neutron', 'POST', '/networks', {
    network: { name: networks.tenants.name, project_id: project },
  });
  const { network: outside } = await admin.send('neutron', 'POST', '/networks', {
    network: { name: networks.outside.name, 'router:external': true },
  });
  const subnets: { id: string }[] = [];
  for (const [{ id: network_id }, { cidr, gateway }] of [
    [tenants, networks.tenants],
    [outside, networks.outside],
  ] as const) {
    // Nothing here answers DHCP: a machine's network data has its address.
    const subnet = {
      network_id,
      cidr,
      gateway_ip: gateway,
      ip_version: 4,
      enable_dhcp: false,
      project_id: project,
    };
    subnets.push((await admin.send('neutron', 'POST', '/subnets', { subnet })).subnet);
  }
  const { router } = await admin.send('neutron', 'POST', '/routers', {
    router: { name: 'router', project_id: project, external_gateway_info: { network_id: outside.id } },
  });
  await admin.send('neutron', 'PUT', `/routers/${router.id}/add_router_interface`, {
    subnet_id: subnets[0]?.id,
  });
}

async function addImagesAndFlavors(admin: Api): Promise<void> {
  const made = await admin.send('glance', 'POST', '/images', {
    ...{ name: image.name, disk_format: 'raw', container_format: 'bare', visibility: 'public', min_disk: 1 },
  });
  await admin.send('glance', 'PUT', `/images/${made.id}/file`, Buffer.from('the disk of an image'));
  for (const flavor of flavors) await admin.send('nova-api', 'POST', '/flavors', { flavor });
}

async function addZones(admin: Api): Promise<void> {
  await site.isSo('nova-api', async () => {
    const { services } = await admin.send('nova-api', 'GET', '/os-services?binary=nova-compute');
    return (
      services.filter(({ state }: { state: string }) => state === 'up').length ===
      Object.keys(computes).length
    );
  });
  await site.run('nova-manage', '--config-file', '/srv/etc/nova.conf', 'cell_v2', 'discover_hosts');
  const operator = new Operator(admin);
  for (const [host, zone] of Object.entries(computes)) await operator.addZone(host, zone);
}

try {
  await makeDatabases();
  await site.startKeystone();
  const admin = userOf('admin', 'admin');
  await fillCatalog(admin);
  site.startServices(Object.keys(computes));
  const project = await addUsers(admin);
  says('catalog and users are there');
  await site.answer();
  says('each API answers');
  await addNetworks(admin, project);
  await addImagesAndFlavors(admin);
  await addZones(admin);
  says('networks, image, flavors and zones are there');
  for (const name of site.running) if (name !== 'mariadb') await site.stop(name);
  await site.stop('mariadb', 'SIGTERM');
  rmSync(TEMPLATE, { recursive: true, force: true });
  mkdirSync(TEMPLATE, { recursive: true });
  for (const name of ['rabbit', 'log', 'usr', 'lock'])
    rmSync(join(site.folder, name), { recursive: true, force: true });
  for (const name of ['rabbit', 'log', 'lock']) mkdirSync(join(site.folder, name));
  cpSync(site.folder, TEMPLATE, { recursive: true });
  says(`kept in ${TEMPLATE}`);
} finally {
  await site[Symbol.asyncDispose]();
}
