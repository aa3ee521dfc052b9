import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { Diagnosis } from '../kit/driver-definition.ts';
import { IncusApi } from './api.ts';
import { type Connection, IncusClient } from './client.ts';
import { isNotFound } from './errors.ts';
import type { IncusConfig } from './options.ts';
import { countFree, FleetReader, offerOf } from './placement.ts';
import { imageOf } from './translate.ts';

const CLOCK_TOLERANCE_MS = 5_000;

/** Looks at every prerequisite, one by one; changes nothing. */
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
    const members = yield* membersOf(api);
    yield* exists(client, `/1.0/projects/${options.project}`, `project ${options.project}`);
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
    for (const name of each(pools)) yield* poolOf(client, name);
    for (const name of each([options.network, ...offers.map(({ machine }) => machine.network)]))
      yield* networkOf(client, name, options);
    const aliases = offers.flatMap(({ offer, machine }) =>
      offer.osOptions.map((image) => imageOf(image, machine, options).alias),
    );
    for (const alias of each(aliases))
      yield* exists(
        client,
        `/1.0/images/aliases/${encodeURIComponent(alias)}`,
        `image ${alias}`,
        'incus image copy … --alias',
      );
    yield* forwardsOf(options, members);
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
      yield {
        subject,
        verdict: 'broken',
        finding: 'Incus answers, and does not trust the client certificate.',
        remedy: 'Run `incus config trust add-certificate CLIENT.crt` on the cluster.',
      };
      return false;
    }
    yield { subject, verdict: 'ok', finding: `Incus ${environment.server_version} answers, and trusts us.` };
    const missing = [
      'network_forward',
      'instance_state_started_at',
      'cluster_internal_custom_volume_copy',
    ].filter((name) => !extensions.includes(name));
    if (missing.length > 0)
      yield {
        subject: 'version of Incus',
        verdict: 'broken',
        finding: `Incus ${environment.server_version} lacks ${missing.join(', ')}.`,
        remedy: 'Install Incus 6.0 or later.',
      };
    return true;
  } catch (error) {
    yield broken(subject, error, 'Check platform.address, the certificates, and that incusd runs.');
    return false;
  }
}

async function* membersOf(api: IncusApi): AsyncGenerator<Diagnosis, string[]> {
  try {
    const members = await api.members();
    for (const { server_name: name, status, message } of members)
      yield status === 'Online'
        ? { subject: `member ${name}`, verdict: 'ok', finding: 'It is online.' }
        : {
            subject: `member ${name}`,
            verdict: 'warning',
            finding: `It is ${status}: ${message}. Nothing new is placed there, and its machines are unknown.`,
            remedy: `Start incusd on ${name}, or see \`incus cluster list\`.`,
          };
    return members.length === 0 ? ['none'] : members.map(({ server_name: name }) => name);
  } catch (error) {
    yield broken('cluster members', error, 'See `incus cluster list`.');
    return [];
  }
}

async function* exists(
  client: IncusClient,
  path: string,
  subject: string,
  remedy = 'Make it, or name another one in berth.yaml.',
): AsyncGenerator<Diagnosis> {
  try {
    await client.get(path);
    yield { subject, verdict: 'ok', finding: 'It is there.' };
  } catch (error) {
    yield isNotFound(error)
      ? { subject, verdict: 'broken', finding: 'There is none of that name.', remedy }
      : broken(subject, error, remedy);
  }
}

/** Drivers of Incus that hold a size; `dir` does only where its file system has project quotas. */
const WITH_QUOTA = new Set(['btrfs', 'zfs', 'lvm', 'lvmcluster', 'ceph', 'linstor', 'truenas']);

async function* poolOf(client: IncusClient, name: string): AsyncGenerator<Diagnosis> {
  const subject = `storage pool ${name}`;
  try {
    const { driver } = (await client.get(`/1.0/storage-pools/${name}`)).metadata as { driver?: string };
    yield WITH_QUOTA.has(driver ?? '')
      ? { subject, verdict: 'ok', finding: `It is there, of ${driver}.` }
      : {
          subject,
          verdict: 'warning',
          finding: `It is of ${driver}, which may not hold a machine to the size of its disk.`,
          remedy: 'Use a pool of zfs, btrfs, lvm or ceph.',
        };
  } catch (error) {
    yield broken(subject, error, 'See `incus storage list`.');
  }
}

async function* networkOf(
  client: IncusClient,
  name: string,
  { acls, isolation }: IncusConfig,
): AsyncGenerator<Diagnosis> {
  const subject = `network ${name}`;
  try {
    const { type, managed, config } = (await client.get(`/1.0/networks/${name}`)).metadata as {
      type?: string;
      managed?: boolean;
      config?: Record<string, string>;
    };
    if (managed !== true) {
      yield {
        subject,
        verdict: 'broken',
        finding: 'Incus does not manage it.',
        remedy: 'Name one of `incus network list`.',
      };
      return;
    }
    yield { subject, verdict: 'ok', finding: `It is there, of type ${type}.` };
    const hasAcl = (config?.['security.acls'] ?? '') !== '' || acls.length > 0;
    if (!hasAcl)
      yield {
        subject: `what machines reach from ${name}`,
        verdict: 'warning',
        finding: 'No network ACL keeps machines from the services of their host.',
        remedy: 'Set security.acls on the network, as docs/how-to/incus.md says.',
      };
    if (!isolation && acls.length === 0)
      yield {
        subject: `machines on ${name}`,
        verdict: 'warning',
        finding: 'platform.isolation is off: machines reach each other.',
        remedy: 'Leave it on, unless one tenant has them all.',
      };
  } catch (error) {
    yield broken(subject, error, 'See `incus network list`.');
  }
}

async function* forwardsOf(
  { port_forwards: forwards }: IncusConfig,
  members: readonly string[],
): AsyncGenerator<Diagnosis> {
  if (forwards === undefined) return;
  const [first, last] = forwards.ports;
  for (const member of members)
    if (forwards.addresses[member] === undefined)
      yield {
        subject: `port forwards on ${member}`,
        verdict: 'broken',
        finding: 'platform.port_forwards.addresses names no address of it.',
        remedy: `Add \`${member}: ITS-ADDRESS\`.`,
      };
  yield { subject: 'ports', verdict: 'ok', finding: `${last - first + 1} ports for each member.` };
}

async function* roomOf(
  api: IncusApi,
  options: IncusConfig,
  catalog: Catalog,
  now: () => number,
): AsyncGenerator<Diagnosis> {
  try {
    const fleet = await new FleetReader(api, options, catalog, now).read();
    for (const { offerId, datacenter, units } of countFree(catalog, fleet, options))
      yield {
        subject: `room for ${offerId} in ${datacenter}`,
        verdict: units > 0 ? 'ok' : 'warning',
        finding: `${units} more would fit.`,
        ...(units === 0 && {
          remedy: 'Check host_group, GPUs and sizes of the offer against `incus info --resources`.',
        }),
      };
  } catch (error) {
    yield broken(
      'resources of the members',
      error,
      'The certificate needs the right to read /1.0/resources.',
    );
  }
}

/** A note says when it was written: the clocks should agree. */
async function* clockOf(client: IncusClient, now: () => number): AsyncGenerator<Diagnosis> {
  const subject = 'clock';
  try {
    const begunAt = now();
    const date = await client.date();
    const offMs = Math.max(begunAt - date - 1_000, date - now(), 0);
    yield offMs <= CLOCK_TOLERANCE_MS
      ? { subject, verdict: 'ok', finding: 'It agrees with that of Incus.' }
      : {
          subject,
          verdict: 'broken',
          finding: `It is ${Math.round(offMs / 1000)} s from that of Incus.`,
          remedy: 'Run NTP on both.',
        };
  } catch (error) {
    yield broken(subject, error, 'Run NTP on both.');
  }
}

function broken(subject: string, error: unknown, remedy: string): Diagnosis {
  const message = error instanceof Error ? error.message : String(error);
  const finding = message.endsWith('.') ? message : `${message}.`;
  return { subject, verdict: 'broken', finding, remedy };
}
