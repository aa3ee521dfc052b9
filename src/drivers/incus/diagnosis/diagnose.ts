import type { Catalog } from '../../../orchestrator/catalog/catalog.ts';
import type { FreeUnits } from '../../../orchestrator/model/inventory.ts';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { diagnoseClock, diagnoseFreeUnits, examine, sentence, unique } from '../../kit/diagnosis.ts';
import { IncusApi, type Member, SINGLE } from '../api.ts';
import { type Connection, IncusClient } from '../client.ts';
import { isNotFound } from '../errors.ts';
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
    const connected = await connectionOf(api, connection);
    yield connected;
    if (connected.verdict !== 'ok') return;
    let known: Member[] = [];
    const read = await examine('cluster members', 'See `incus cluster list`.', async () => {
      known = await api.members();
      return `There are ${known.length}.`;
    });
    if (read.verdict !== 'ok') return yield read;
    yield* diagnoseMembers(known);
    const members = known.length === 0 ? [SINGLE] : known.map(({ server_name: name }) => name);
    yield exists(
      client,
      `/1.0/projects/${options.project}`,
      `project ${options.project}`,
      'Create it, or correct platform.project: Incus lists a project that does not exist as empty.',
    );
    const offers = [...catalog.offers.values()].map((offer) => ({ offer, machine: offerOf(offer) }));
    const machines = offers.map(({ machine }) => machine);
    const profiles = [...options.profiles, ...machines.flatMap((machine) => machine.profiles ?? [])];
    for (const name of unique(profiles)) yield exists(client, `/1.0/profiles/${name}`, `profile ${name}`);
    const ofOffers = machines.map((machine) => machine.storage_pool);
    const pools = unique([options.storage_pool, options.volume_pool, ...ofOffers]);
    const networks = unique([options.network, ...machines.map(({ network }) => network)]);
    for (const name of pools) for (const member of members) yield diagnosePool(api, name, member);
    for (const name of networks) yield* networkOf(client, name, options);
    yield* diagnoseImages(api, offers, options);
    const groups = [...Object.values(options.datacenters), ...machines.map((machine) => machine.host_group)];
    yield* diagnoseGroups(known, unique(groups));
    yield* diagnoseWarnings(client, [...pools, ...networks]);
    if (machines.some(({ kind }) => kind === 'virtual-machine'))
      for (const member of members) yield diagnoseVirtualMachines(client, member);
    yield* diagnoseForwards(options, members);
    yield* roomOf(api, options, catalog, now);
    yield examine('clock', 'Run NTP on both.', async () => {
      const begunAt = now();
      return diagnoseClock('Incus', await client.date(), begunAt, now());
    });
  } finally {
    await client.close();
  }
}

/** Extensions of the API that Incus has since 6.0. */
const NEEDED = ['network_forward', 'instance_state_started_at', 'cluster_internal_custom_volume_copy'];

function connectionOf(api: IncusApi, { addresses }: Connection): Promise<Diagnosis> {
  const subject = `connection to ${addresses.join(', ')}`;
  const remedy =
    'Check platform.address, the certificates, and that incusd is running. To use its socket, this user must be in the group incus-admin.';
  return examine(subject, remedy, async () => {
    const { auth, environment, api_extensions: extensions } = await api.server();
    const { server_version: version } = environment;
    if (auth !== 'trusted')
      return broken(
        subject,
        'Incus answers, but does not trust the client certificate.',
        'Run `incus config trust add-certificate CLIENT.crt` on the cluster.',
      );
    const missing = NEEDED.filter((name) => !extensions.includes(name));
    if (missing.length === 0) return `Incus ${version} answers and trusts the client certificate.`;
    const finding = `Incus ${version} does not support ${missing.join(', ')}.`;
    return broken('Incus version', finding, 'Install Incus 6.0 or later.');
  });
}

function exists(
  client: IncusClient,
  path: string,
  subject: string,
  remedy = 'Create it, or name another one in berth.yaml.',
): Promise<Diagnosis> {
  return examine(subject, remedy, async () => {
    try {
      await client.get(path);
      return 'It is there.';
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return broken(subject, 'It does not exist.', remedy);
    }
  });
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
    yield broken(subject, sentence((error as Error).message), 'See `incus network list`.');
  }
}

async function* roomOf(
  api: IncusApi,
  options: IncusConfig,
  catalog: Catalog,
  now: () => number,
): AsyncGenerator<Diagnosis> {
  let free: FreeUnits[] = [];
  const remedy = 'The client certificate must be allowed to read /1.0/resources.';
  const read = await examine('resources of the members', remedy, async () => {
    const reader = new FleetReader({ api, instances: new InstanceReader(api) }, options, catalog, now);
    free = countFree(catalog, await reader.read(), options);
    return 'They can be read.';
  });
  yield read;
  yield* diagnoseFreeUnits(
    { answer: 'counted', free },
    'Check host_group, GPUs and sizes of the offer against `incus info --resources`.',
  );
}

/** Storage drivers that enforce a size. `dir` does so only on a file system with project quotas. */
const WITH_QUOTA = new Set(['btrfs', 'zfs', 'lvm', 'lvmcluster', 'ceph', 'linstor', 'truenas']);
const PREALLOCATE =
  'Preallocate the file, as "What Incus needs to have" in docs/how-to/incus.md says, or use a block device.';

/** Checks a storage pool on a member, also by making and removing an empty volume. */
function diagnosePool(api: IncusApi, name: string, member: string): Promise<Diagnosis> {
  const subject = `storage pool ${name}${member === SINGLE ? '' : ` on ${member}`}`;
  return examine(subject, 'See `incus storage list`.', async () =>
    findingOf(subject, name, await readPool(api, name, member)),
  );
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
