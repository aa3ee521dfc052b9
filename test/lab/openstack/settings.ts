import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Number of the services' network namespace, and their address in it. */
export const index = 200;
export const address = `10.77.${index}.2`;
/** Where the site's folder is in the services' mount namespace. The databases name files in it. */
export const SITE = '/srv';

export const ports = {
  keystone: 5000,
  glance: 9292,
  placement: 8778,
  neutron: 9696,
  'nova-api': 8774,
  'cinder-api': 8776,
} as const;
export type ApiName = keyof typeof ports;
export const urlOf = (name: ApiName): string => `http://${address}:${ports[name]}`;
export const authUrl = `${urlOf('keystone')}/v3`;

/** Everybody's password, and the secret of the application credential. */
export const SECRET = 'lab-secret';
export const region = 'RegionOne';
export const databases = [
  'keystone',
  'glance',
  'placement',
  'neutron',
  'nova',
  'nova_api',
  'nova_cell0',
  'cinder',
];

type Sections = Record<string, Record<string, string | number | boolean>>;

/** The services' administrator, as each of them logs in. */
const admin = {
  auth_url: authUrl,
  auth_type: 'password',
  username: 'admin',
  password: SECRET,
  project_name: 'admin',
  user_domain_name: 'Default',
  project_domain_name: 'Default',
  region_name: region,
};
const { region_name: _, ...withoutRegion } = admin;
/** For how long a service goes on with a token that it has had checked. */
export const TOKEN_CACHE_S = 5;
const keystone_authtoken = {
  ...withoutRegion,
  www_authenticate_uri: authUrl,
  token_cache_time: TOKEN_CACHE_S,
  service_token_roles: 'service',
  service_token_roles_required: true,
};
export const database = (name: string): string =>
  `mysql+pymysql://lab:${SECRET}@${address}/${name}?charset=utf8`;
const transport_url = `rabbit://lab:${SECRET}@${address}:5672/`;
const oslo_concurrency = { lock_path: `${SITE}/lock` };
const oslo_policy = { enforce_scope: false };
/** A service that is silent for this long is shown as down. */
const SERVICE_DOWN_S = 30;
const heartbeats = { report_interval: 5, service_down_time: SERVICE_DOWN_S };

const nova: Sections = {
  DEFAULT: {
    ...heartbeats,
    transport_url,
    my_ip: address,
    enabled_apis: 'osapi_compute',
    osapi_compute_workers: 1,
    api_paste_config: '/usr/share/nova-common/api-paste.ini',
    state_path: `${SITE}/nova`,
    vif_plugging_is_fatal: false,
    vif_plugging_timeout: 0,
    cpu_allocation_ratio: 1,
    ram_allocation_ratio: 1,
    disk_allocation_ratio: 1,
    reserved_host_memory_mb: 0,
  },
  api_database: { connection: database('nova_api') },
  database: { connection: database('nova') },
  scheduler: { workers: 1 },
  conductor: { workers: 1 },
  glance: { api_servers: urlOf('glance') },
  vnc: { enabled: false },
  keystone_authtoken,
  placement: admin,
  neutron: admin,
  cinder: { ...admin, catalog_info: 'volumev3::publicURL' },
  service_user: { ...admin, send_service_user_token: true },
  oslo_concurrency,
  oslo_policy,
};

const files: Record<string, Sections> = {
  keystone: {
    DEFAULT: { log_file: `${SITE}/log/keystone.log` },
    database: { connection: database('keystone') },
    // Its one process has the only copy, so none is stale.
    cache: { enabled: true, backend: 'oslo_cache.dict' },
    // As few as there can be: each service logs in with its password.
    identity: { password_hash_rounds: 4 },
    token: { provider: 'fernet', caching: false, cache_on_issue: false },
    fernet_tokens: { key_repository: `${SITE}/keys` },
    fernet_receipts: { key_repository: `${SITE}/keys` },
    credential: { key_repository: `${SITE}/credential` },
    oslo_policy,
  },
  glance: {
    DEFAULT: { bind_host: address, bind_port: ports.glance, workers: 0, enabled_backends: 'fs:file' },
    glance_store: { default_backend: 'fs' },
    fs: { filesystem_store_datadir: `${SITE}/glance` },
    database: { connection: database('glance') },
    paste_deploy: { flavor: 'keystone', config_file: '/usr/share/glance-common/glance-api-paste.ini' },
    keystone_authtoken,
    oslo_concurrency,
    oslo_policy,
  },
  placement: {
    DEFAULT: { log_file: `${SITE}/log/placement.log` },
    placement_database: { connection: database('placement') },
    keystone_authtoken,
    oslo_policy,
  },
  neutron: {
    DEFAULT: {
      transport_url,
      core_plugin: 'ml2',
      service_plugins: 'router',
      api_paste_config: '/usr/share/neutron-common/api-paste.ini',
      state_path: `${SITE}/neutron`,
      log_file: `${SITE}/log/neutron.log`,
    },
    ml2: { type_drivers: 'local', tenant_network_types: 'local', mechanism_drivers: 'berth_lab' },
    database: { connection: database('neutron') },
    keystone_authtoken,
    nova: admin,
    placement: admin,
    oslo_concurrency,
    oslo_policy,
  },
  nova,
  cinder: {
    DEFAULT: {
      ...heartbeats,
      transport_url,
      my_ip: address,
      osapi_volume_workers: 1,
      api_paste_config: '/usr/share/cinder-common/api-paste.ini',
      resource_query_filters_file: '/usr/share/cinder-common/resource_filters.json',
      state_path: `${SITE}/cinder`,
      glance_api_servers: urlOf('glance'),
      enabled_backends: 'files',
    },
    files: {
      volume_driver: 'berth_lab.volumes.FileDriver',
      volume_backend_name: 'files',
      berth_lab_folder: `${SITE}/volumes`,
    },
    database: { connection: database('cinder') },
    keystone_authtoken,
    nova: { ...admin, interface: 'public' },
    service_user: { ...admin, send_service_user_token: true },
    oslo_concurrency: { lock_path: `${SITE}/cinder/lock` },
    oslo_policy,
  },
};

const toText = (sections: Sections): string =>
  Object.entries(sections)
    .map(([name, keys]) =>
      [`[${name}]`, ...Object.entries(keys).map(([key, value]) => `${key} = ${value}`), ''].join('\n'),
    )
    .join('\n');

/** Configuration of nova-compute on a host; `more` is merged into its sections. */
export function writeComputeSettings(folder: string, host: string, more: Sections): void {
  const merged = { ...nova };
  const own: Sections = {
    ...more,
    DEFAULT: { host, state_path: `${SITE}/nova-${host}`, ...more['DEFAULT'] },
  };
  for (const [name, keys] of Object.entries(own)) merged[name] = { ...nova[name], ...keys };
  writeFileSync(join(folder, `etc/nova-${host}.conf`), toText(merged));
  mkdirSync(join(folder, `nova-${host}/instances`), { recursive: true });
}

/** Writes what the services read into a site's folder. */
export function writeSettings(folder: string, computes: readonly string[]): void {
  const folders = [
    'etc',
    'log',
    'lock',
    'db',
    'rabbit',
    'glance',
    'volumes',
    'nova',
    'neutron',
    'cinder/lock',
  ];
  for (const name of folders) mkdirSync(join(folder, name), { recursive: true });
  for (const [name, sections] of Object.entries(files))
    writeFileSync(join(folder, `etc/${name}.conf`), toText(sections));
  for (const host of computes)
    writeComputeSettings(folder, host, {
      DEFAULT: { compute_driver: 'berth_lab.LabHypervisor' },
    });
  const rabbit = ['listeners.tcp.default = 5672', 'default_user = lab', `default_pass = ${SECRET}`];
  writeFileSync(join(folder, 'etc/rabbit.conf'), `${rabbit.join('\n')}\n`);
  writeFileSync(join(folder, 'etc/rabbit_plugins'), '[].\n');
}
