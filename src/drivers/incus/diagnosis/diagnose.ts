import type { Catalog } from '../../../orchestrator/catalog/catalog.ts';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { diagnoseClock, diagnoseFreeUnits } from '../../kit/obstacles.ts';
import { IncusApi, SINGLE } from '../api.ts';
import { type Connection, IncusClient } from '../client.ts';
import { IncusRefusal } from '../errors.ts';
import { FleetReader, offerOf, type Pool, readPool } from '../fleet.ts';
import { InstanceReader } from '../instances.ts';
import type { IncusConfig } from '../options.ts';
import { countFree } from '../placement.ts';
import {
  diagnoseForwards,
  diagnoseGroups,
  diagnoseImages,
  diagnoseMembers,
  diagnoseVirtualMachines,
  failed,
  notSetUp,
} from './checks.ts';
import { diagnoseWarnings } from './warnings.ts';

/** Checks each prerequisite in turn. Changes nothing. */
export async function* diagnose(
  options: IncusConfig,
  catalog: Catalog,
  now: () => number,
  connection: Connection,
): AsyncGenerator<Diagnosis> {
  const client = new IncusClient(connection);
  const api = new IncusApi(client);
  try {
    const trusted = yield* connectionOf(api, connection);
    if (!trusted) return;
    const members = yield* diagnoseMembers(api);
    yield* exists(
      client,
      `/1.0/projects/${options.project}`,
      `project ${options.project}`,
      'Create it, or correct platform.project: Incus lists a project that does not exist as empty.',
    );
    const offers = [...catalog.offers.values()].map((offer) => ({ offer, machine: offerOf(offer) }));
    const each = <T>(values: (T | undefined)[]): T[] => [
      ...new Set(values.filter((value) => value !== undefined)),
    ];
    for (const name of each([
      ...options.profiles,
      ...offers.flatMap(({ machine }) => machine.profiles ?? []),
    ]))
      yield* exists(client, `/1.0/profiles/${name}`, `profile ${name}`);
    const pools = [
      options.storage_pool,
      options.volume_pool,
      ...offers.map(({ machine }) => machine.storage_pool),
    ];
    const networks = each([options.network, ...offers.map(({ machine }) => machine.network)]);
    for (const name of each(pools)) yield* diagnosePool(api, name, members);
    for (const name of networks) yield* networkOf(client, name, options);
    yield* diagnoseImages(api, offers, options);
    yield* diagnoseGroups(api, [
      ...Object.values(options.datacenters),
      ...offers.map(({ machine }) => machine.host_group),
    ]);
    yield* diagnoseWarnings(client, [...each(pools), ...networks]);
    if (offers.some(({ machine }) => machine.kind === 'virtual-machine'))
      yield* diagnoseVirtualMachines(client, members);
    yield* diagnoseForwards(options, members);
    yield* roomOf(api, options, catalog, now);
    yield* clockOf(client, now);
  } finally {
    await client.close();
  }
}

async function* connectionOf(api: IncusApi, { addresses }: Connection): AsyncGenerator<Diagnosis, boolean> {
  const subject = `connection to ${addresses.join(', ')}`;
  try {
    const { auth, environment, api_extensions: extensions } = await api.server();
    if (auth !== 'trusted') {
      yield broken(
        subject,
        'Incus answers, but does not trust the client certificate.',
        'Run `incus config trust add-certificate CLIENT.crt` on the cluster.',
      );
      return false;
    }
    yield ok(subject, `Incus ${environment.server_version} answers and trusts the client certificate.`);
    const missing = [
      'network_forward',
      'instance_state_started_at',
      'cluster_internal_custom_volume_copy',
    ].filter((name) => !extensions.includes(name));
    if (missing.length > 0)
      yield broken(
        'Incus version',
        `Incus ${environment.server_version} does not support ${missing.join(', ')}.`,
        'Install Incus 6.0 or later.',
      );
    return true;
  } catch (error) {
    yield failed(
      subject,
      error,
      'Check platform.address, the certificates, and that incusd is running. To use its socket, this user must be in the group incus-admin.',
    );
    return false;
  }
}

async function* exists(
  client: IncusClient,
  path: string,
  subject: string,
  remedy = 'Create it, or name another one in berth.yaml.',
): AsyncGenerator<Diagnosis> {
  try {
    await client.get(path);
    yield ok(subject, 'It is there.');
  } catch (error) {
    yield error instanceof IncusRefusal && error.status === 404
      ? broken(subject, 'It does not exist.', remedy)
      : failed(subject, error, remedy);
  }
}

async function* networkOf(
  client: IncusClient,
  name: string,
  { acls, isolation }: IncusConfig,
): AsyncGenerator<Diagnosis> {
  const subject = `network ${name}`;
  try {
    const { type, managed, config, status } = (await client.get(`/1.0/networks/${name}`)).metadata as {
      type?: string;
      managed?: boolean;
      status?: string;
      config?: Record<string, string>;
    };
    if (managed !== true)
      return yield broken(subject, 'Incus does not manage it.', 'Name one of `incus network list`.');
    if (status !== 'Created') return yield notSetUp(subject, status, `incus network show ${name}`);
    yield ok(subject, `It exists, with type ${type}.`);
    if (type === 'bridge' && (config?.['ipv4.address'] ?? 'none') === 'none')
      yield broken(
        `addresses on ${name}`,
        'The bridge has no IPv4 address, so machines get none and do not come up.',
        `\`incus network set ${name} ipv4.address=10.88.0.1/24 ipv4.nat=true\``,
      );
    const hasAcl = (config?.['security.acls'] ?? '') !== '' || acls.length > 0;
    if (!hasAcl)
      yield warning(
        `isolation of machines on ${name}`,
        'No network ACL blocks machines from the services of their host.',
        'Set security.acls on the network, as docs/how-to/incus.md says.',
      );
    if (!isolation && acls.length === 0)
      yield warning(
        `machines on ${name}`,
        'platform.isolation is off: machines reach each other.',
        'Turn it on, unless all machines belong to one tenant.',
      );
  } catch (error) {
    yield failed(subject, error, 'See `incus network list`.');
  }
}

async function* roomOf(
  api: IncusApi,
  options: IncusConfig,
  catalog: Catalog,
  now: () => number,
): AsyncGenerator<Diagnosis> {
  try {
    const reader = new FleetReader({ api, instances: new InstanceReader(api) }, options, catalog, now);
    const free = countFree(catalog, await reader.read(), options);
    yield* diagnoseFreeUnits(
      { answer: 'counted', free },
      'Check host_group, GPUs and sizes of the offer against `incus info --resources`.',
    );
  } catch (error) {
    const remedy = 'The client certificate must be allowed to read /1.0/resources.';
    yield failed('resources of the members', error, remedy);
  }
}

async function* clockOf(client: IncusClient, now: () => number): AsyncGenerator<Diagnosis> {
  try {
    const begunAt = now();
    yield diagnoseClock('Incus', await client.date(), begunAt, now());
  } catch (error) {
    yield failed('clock', error, 'Run NTP on both.');
  }
}

/** Storage drivers that enforce a size. `dir` does so only on a file system with project quotas. */
const WITH_QUOTA = new Set(['btrfs', 'zfs', 'lvm', 'lvmcluster', 'ceph', 'linstor', 'truenas']);
const PREALLOCATE =
  'Preallocate the file, as "What Incus needs to have" in docs/how-to/incus.md says, or use a block device.';

/** Checks a storage pool on each member, also by making and removing an empty volume. */
async function* diagnosePool(
  api: IncusApi,
  name: string,
  members: readonly string[],
): AsyncGenerator<Diagnosis> {
  for (const member of members) {
    const subject = `storage pool ${name}${member === SINGLE ? '' : ` on ${member}`}`;
    try {
      yield findingOf(subject, name, await readPool(api, name, member));
    } catch (error) {
      yield failed(subject, error, 'See `incus storage list`.');
    }
  }
}

function findingOf(subject: string, name: string, pool: Pool): Diagnosis {
  const { driver, status, problem, path } = pool;
  if (status !== 'Created') return notSetUp(subject, status, `incus storage show ${name}`);
  if (problem !== undefined)
    return broken(
      subject,
      `It is ${problem}: machines there cannot write, and new ones cannot be made.`,
      'Free space below the pool, then follow docs/runbook.md ("A storage pool is full or read-only").',
    );
  if (!WITH_QUOTA.has(driver))
    return warning(
      subject,
      `Its driver ${driver} may not enforce the disk size of a machine.`,
      'Use a pool with the driver zfs, btrfs, lvm or ceph.',
    );
  return path === undefined
    ? ok(subject, `It exists, with the driver ${driver}.`)
    : findingOfFile(subject, path, pool);
}

/** Compares the file that a pool is in with the file system that has it. */
function findingOfFile(subject: string, path: string, { file, config }: Pool): Diagnosis {
  const consequence = 'when its file system is full, the pool turns read-only, with all machines';
  if (file === undefined) {
    const isKept = config['btrfs.mount_options']?.split(',').includes('nodiscard');
    return isKept
      ? ok(subject, `It is in ${path}, a file that keeps the space that it has (nodiscard).`)
      : warning(
          subject,
          `It is in ${path}, a file that Berth cannot read. If it is sparse: ${consequence}.`,
          PREALLOCATE,
        );
  }
  const { sparseBytes, freeBytes } = file;
  if (sparseBytes === 0) return ok(subject, `It is in ${path}, a preallocated file.`);
  const finding = `Its file ${path} may still grow by ${gb(sparseBytes)} GB, and ${gb(freeBytes)} GB are free below it: ${consequence}.`;
  return sparseBytes > freeBytes
    ? broken(subject, finding, `Free space there, or make the pool smaller. ${PREALLOCATE}`)
    : warning(subject, finding, PREALLOCATE);
}

const gb = (bytes: number): number => Math.round((bytes / 2 ** 30) * 10) / 10;
