import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import { broken, type Diagnosis, ok, warning } from '../../ports/diagnosis.ts';
import { CloudApi, type Flavor } from './api.ts';
import { CloudClient, type Connection, type Json } from './client.ts';
import { CloudRefusal } from './errors.ts';
import type { OpenStackConfig } from './options.ts';
import { readInventory } from './placement.ts';
import { offerOf, type Platform } from './platform.ts';
import { isWithin, type Service, services } from './session.ts';
import { imageOf } from './translate.ts';

/** Allowed difference between this machine's clock and Keystone's. */
const CLOCK_TOLERANCE_MS = 5_000;

/** Checks each prerequisite in turn. Changes nothing. */
export async function* diagnose(
  options: OpenStackConfig,
  catalog: Catalog,
  connection: Connection & { now: () => number },
): AsyncGenerator<Diagnosis> {
  const { cloud, now } = connection;
  const client = new CloudClient(connection);
  const platform: Platform = { api: new CloudApi(client), options, catalog, now };
  try {
    if (cloud.isReadableByOthers)
      yield warning(
        cloud.file,
        'Others than its owner may read it, and it holds a secret.',
        `\`chmod 600 ${cloud.file}\``,
      );
    if (!cloud.verify)
      yield warning(
        cloud.file,
        '`verify: false`: whoever is on the way to the cloud can read the token.',
        'Set `cacert` instead.',
      );
    if (!(yield* credential(client, cloud.authUrl))) return;
    for (const service of ['compute', 'volume', 'placement'] as const) yield* versionOf(client, service, now);
    const networks = [
      options.network,
      options.floating_network,
      ...machines(platform).map(({ machine }) => machine.network),
    ];
    for (const name of unique(networks)) yield* named(platform, 'networks', name);
    for (const name of options.security_groups ?? []) yield* named(platform, 'security-groups', name);
    yield* flavors(platform);
    yield* images(platform);
    yield* zones(platform);
    yield* room(platform);
  } finally {
    await client.close();
  }
}

const unique = <T>(values: readonly (T | undefined)[]): T[] => [
  ...new Set(values.filter((value) => value !== undefined)),
];

function machines(platform: Platform) {
  return [...platform.catalog.offers.values()].map((offer) => ({
    offer,
    machine: offerOf(platform, offer.id),
  }));
}

function failed(subject: string, error: unknown, remedy: string): Diagnosis {
  const { message } = error as Error;
  return broken(subject, `${message.charAt(0).toUpperCase()}${message.slice(1)}.`, remedy);
}

async function* credential(client: CloudClient, authUrl: string): AsyncGenerator<Diagnosis, boolean> {
  const subject = `credential at ${authUrl}`;
  try {
    const { project, region } = await client.session();
    yield ok(subject, `It is one of the project ${project.name} (${project.id}), in the region ${region}.`);
    return true;
  } catch (error) {
    yield failed(
      subject,
      error,
      'Check the entry of clouds.yaml with `openstack --os-cloud NAME token issue`.',
    );
    return false;
  }
}

/** The range of versions in Nova's, Cinder's and Placement's documents, which differ. */
async function* versionOf(
  client: CloudClient,
  service: Service,
  now: () => number,
): AsyncGenerator<Diagnosis> {
  const subject = `API of ${services[service].types[0]}`;
  const needed = services[service].microversion?.[2] ?? '';
  const begunAt = now();
  try {
    const { body, date } = await client.versions(service);
    const found = (body['version'] ?? (body['versions'] as Json[] | undefined)?.at(-1) ?? {}) as Json;
    const [from, to] = [
      String(found['min_version'] ?? ''),
      String(found['version'] ?? found['max_version'] ?? ''),
    ];
    yield isWithin(needed, from, to)
      ? ok(subject, `It speaks ${from} to ${to}; Berth uses ${needed}.`)
      : broken(
          subject,
          `It speaks ${from} to ${to}, and Berth uses ${needed}.`,
          'Upgrade the cloud to OpenStack Train or later.',
        );
    if (service === 'compute') yield clockOf(date, begunAt, now());
  } catch (error) {
    const isOptional = service !== 'compute' && error instanceof CloudRefusal;
    yield isOptional
      ? warning(
          subject,
          `${(error as Error).message}.`,
          service === 'volume' ? 'Without it there are no volumes.' : 'Without it only quotas limit sales.',
        )
      : failed(subject, error, 'Check the endpoints with `openstack catalog list`.');
  }
}

function clockOf(date: string | undefined, begunAt: number, endedAt: number): Diagnosis {
  const at = Date.parse(date ?? '');
  const offMs = Math.max(begunAt - at - 1_000, at - endedAt, 0);
  return Number.isNaN(at) || offMs <= CLOCK_TOLERANCE_MS
    ? ok('clock', 'It agrees with the clock of Nova.')
    : broken(
        'clock',
        `It differs from the clock of Nova by ${Math.round(offMs / 1000)} s.`,
        'Run NTP on both.',
      );
}

async function* named(
  { api }: Platform,
  kind: 'networks' | 'security-groups',
  name: string,
): AsyncGenerator<Diagnosis> {
  const [subject, list] =
    kind === 'networks' ? [`network ${name}`, 'network'] : [`security group ${name}`, 'security group'];
  try {
    yield (await api.named(kind, name)) === undefined
      ? broken(
          subject,
          'There is none that this project sees, or several of that name.',
          `See \`openstack ${list} list\`; name one by its id.`,
        )
      : ok(subject, 'It is there.');
  } catch (error) {
    yield failed(subject, error, `See \`openstack ${list} list\`.`);
  }
}

async function* flavors(platform: Platform): AsyncGenerator<Diagnosis> {
  let known: readonly Flavor[];
  try {
    known = await platform.api.flavors();
  } catch (error) {
    return yield failed('flavors', error, 'See `openstack flavor list`.');
  }
  for (const { offer, machine } of machines(platform)) {
    const subject = `flavor ${machine.flavor} of ${offer.id}`;
    const flavor = known.find(({ id, name }) => id === machine.flavor || name === machine.flavor);
    if (flavor === undefined)
      yield broken(
        subject,
        'This project sees no such flavor.',
        'See `openstack flavor list`, or have it shared with the project.',
      );
    else yield compare(subject, offer, flavor, machine.boot_volume !== undefined);
  }
}

function compare(subject: string, offer: Offer, flavor: Flavor, bootsFromVolume: boolean): Diagnosis {
  const differences = [
    flavor.vcpus !== offer.vcpus && `${flavor.vcpus} CPUs, and ${offer.vcpus} are sold`,
    flavor.ram !== offer.memoryGb * 1024 && `${flavor.ram} MiB of memory, and ${offer.memoryGb} GiB are sold`,
    !bootsFromVolume &&
      flavor.disk !== offer.storageGb &&
      `a disk of ${flavor.disk} GiB, and ${offer.storageGb} GiB are sold`,
  ].filter((one) => one !== false);
  return differences.length === 0
    ? ok(subject, 'It has what is sold.')
    : warning(subject, `It has ${differences.join('; ')}.`, 'Correct the offer, or name another flavor.');
}

async function* images(platform: Platform): AsyncGenerator<Diagnosis> {
  const wanted = machines(platform).flatMap(({ offer, machine }) =>
    offer.osOptions.map((image) => imageOf(image, machine, platform.options).name),
  );
  for (const name of unique(wanted)) {
    const subject = `image ${name}`;
    const remedy = `\`openstack image create --disk-format qcow2 --file FILE ${name}\`, or name another under platform.images.`;
    try {
      const found = await platform.api.image(name);
      yield found === undefined
        ? broken(subject, 'There is no active image of that name.', remedy)
        : ok(subject, `It is ${found.id}.`);
    } catch (error) {
      yield failed(subject, error, remedy);
    }
  }
}

async function* zones(platform: Platform): AsyncGenerator<Diagnosis> {
  try {
    const known = await platform.api.zones();
    const wanted = [
      ...Object.values(platform.options.datacenters),
      ...machines(platform).map(({ machine }) => machine),
    ];
    for (const name of unique(wanted.flatMap(({ zones: names }) => names ?? []))) {
      const zone = known.find((one) => one.name === name);
      const subject = `availability zone ${name}`;
      const remedy = 'See `openstack availability zone list`.';
      if (zone === undefined) yield broken(subject, 'There is none.', remedy);
      else
        yield zone.isAvailable
          ? ok(subject, 'It is available.')
          : warning(subject, 'No host of it is available.', remedy);
    }
  } catch (error) {
    yield failed('availability zones', error, 'See `openstack availability zone list`.');
  }
}

async function* room(platform: Platform): AsyncGenerator<Diagnosis> {
  try {
    const inventory = await readInventory(platform);
    if (inventory.answer !== 'counted') return;
    for (const { offerId, datacenter, units } of inventory.free) {
      const finding = `There is room for ${units} more, by quota and Placement.`;
      const subject = `room for ${offerId} in ${datacenter}`;
      yield units > 0
        ? ok(subject, finding)
        : warning(subject, finding, 'See `openstack quota show` and `openstack allocation candidate list`.');
    }
    const known = await platform.api.zones();
    if (known.every(({ hosts }) => hosts === undefined))
      yield warning(
        'Placement',
        'This project may not ask it: only quotas limit sales.',
        'Give the project a quota that its hosts can hold.',
      );
  } catch (error) {
    yield failed('room', error, 'See `openstack limits show --absolute`.');
  }
}
