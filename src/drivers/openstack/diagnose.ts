import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import type { Inventory } from '../../orchestrator/model/inventory.ts';
import { broken, type Diagnosis, warning } from '../../ports/diagnosis.ts';
import { diagnoseClock, diagnoseFreeUnits, examine, unique } from '../kit/diagnosis.ts';
import { CloudApi, type Flavor } from './api.ts';
import { CloudClient, type Connection, type Json } from './client.ts';
import type { OpenStackConfig, OpenStackOffer } from './options.ts';
import { findFlavor, readInventory } from './placement.ts';
import { offerOf, type Platform } from './platform.ts';
import { isWithin, services } from './session.ts';
import { imageOf } from './translate.ts';

/** Checks each prerequisite in turn. Changes nothing. */
export async function* diagnose(
  options: OpenStackConfig,
  catalog: Catalog,
  connection: Connection & { now: () => number },
): AsyncGenerator<Diagnosis> {
  const { cloud, now } = connection;
  const client = new CloudClient(connection);
  const platform: Platform = { api: new CloudApi(client), options, catalog };
  try {
    yield* fileOf(connection);
    const credential = await examine(
      `credential at ${cloud.authUrl}`,
      'Check the entry of clouds.yaml with `openstack --os-cloud NAME token issue`.',
      async () => {
        const { project, region } = await client.session();
        return `It belongs to the project ${project.name} (${project.id}), in the region ${region}.`;
      },
    );
    yield credential;
    if (credential.verdict !== 'ok') return;
    if (options.project === undefined) {
      const { project } = await client.session();
      const finding = 'Without it, volumes read as gone with a credential of another project.';
      yield warning('platform.project', finding, `Set \`project: ${project.id}\`.`);
    }
    for (const service of ['compute', 'volume', 'placement'] as const) yield* versionOf(client, service, now);
    const offers = [...catalog.offers.values()].map((offer) => ({
      offer,
      machine: offerOf(platform, offer.id),
    }));
    const ofOffers = offers.map(({ machine }) => machine.network);
    for (const name of unique([options.network, options.floating_network, ...ofOffers]))
      yield named(platform, 'network', name);
    for (const name of options.security_groups ?? []) yield named(platform, 'security-group', name);
    const flavors = platform.api.flavors();
    flavors.catch(() => undefined);
    for (const { offer, machine } of offers) yield flavorOf(offer, machine, flavors);
    const images = offers.flatMap(({ offer, machine }) =>
      offer.osOptions.map((os) => imageOf(os, machine, options).name),
    );
    for (const name of unique(images)) yield imageNamed(platform, name);
    const zones = [...Object.values(options.datacenters), ...offers.map(({ machine }) => machine)];
    for (const name of unique(zones.flatMap((one) => one.zones ?? []))) yield zoneNamed(platform, name);
    yield* room(platform);
  } finally {
    await client.close();
  }
}

function* fileOf({ cloud: { file, isReadableByOthers, verify } }: Connection): Generator<Diagnosis> {
  if (isReadableByOthers)
    yield warning(file, 'Other users can read it, and it contains a secret.', `\`chmod 600 ${file}\``);
  if (!verify)
    yield warning(
      file,
      '`verify: false`: anyone between this machine and the cloud can read the token.',
      'Set `cacert` instead.',
    );
}

/** The range of versions in the documents of Nova, Cinder and Placement, which differ. */
async function* versionOf(
  client: CloudClient,
  service: 'compute' | 'volume' | 'placement',
  now: () => number,
): AsyncGenerator<Diagnosis> {
  const subject = `API of ${service}`;
  const needed = services[service].microversion;
  const begunAt = now();
  let date: string | undefined;
  const found = await examine(subject, 'Check the endpoints with `openstack catalog list`.', async () => {
    const { body, date: answeredAt } = await client.versions(service);
    date = answeredAt;
    const shown = (body['version'] ?? (body['versions'] as Json[] | undefined)?.at(-1) ?? {}) as Json;
    const [from, to] = [`${shown['min_version']}`, `${shown['version'] ?? shown['max_version']}`];
    const speaks = `It speaks ${from} to ${to}, and Berth uses ${needed}`;
    return isWithin(needed, from, to)
      ? `${speaks}.`
      : broken(subject, `${speaks}.`, 'Upgrade the cloud to OpenStack Train or later.');
  });
  const isOptional = service === 'placement' && found.verdict !== 'ok';
  yield isOptional ? warning(subject, found.finding, 'Without it only quotas limit sales.') : found;
  if (service === 'compute' && date !== undefined)
    yield diagnoseClock('Nova', Date.parse(date), begunAt, now());
}

function named({ api }: Platform, kind: 'network' | 'security-group', name: string): Promise<Diagnosis> {
  const words = kind.replace('-', ' ');
  const remedy = `See \`openstack ${words} list\`; name one by its id.`;
  const subject = `${words} ${name}`;
  return examine(subject, remedy, async () =>
    (await api.named(`${kind}s`, name)) === undefined
      ? broken(subject, 'This project sees none, or several of that name.', remedy)
      : 'It is there.',
  );
}

function flavorOf(offer: Offer, machine: OpenStackOffer, reading: Promise<Flavor[]>): Promise<Diagnosis> {
  const subject = `flavor ${machine.flavor} of ${offer.id}`;
  const remedy = 'See `openstack flavor list`, or have it shared with the project.';
  return examine(subject, remedy, async () => {
    const flavor = findFlavor(await reading, machine);
    if (flavor === undefined) return broken(subject, 'This project sees no such flavor.', remedy);
    const differences = [
      flavor.vcpus !== offer.vcpus && `${flavor.vcpus} CPUs, and ${offer.vcpus} are sold`,
      flavor.ram !== offer.memoryGb * 1024 &&
        `${flavor.ram} MiB of memory, and ${offer.memoryGb} GiB are sold`,
      machine.boot_volume === undefined &&
        flavor.disk !== offer.storageGb &&
        `a disk of ${flavor.disk} GiB, and ${offer.storageGb} GiB are sold`,
    ].filter((one) => one !== false);
    const isUncounted =
      flavor.extra_specs?.['pci_passthrough:alias'] !== undefined &&
      Object.keys(flavor.extra_specs).every((key) => !key.startsWith('resources:'));
    const uncounted = isUncounted
      ? ' Placement does not count its PCI devices: the units of the catalog limit them.'
      : '';
    return differences.length === 0
      ? `It matches the offer.${uncounted}`
      : warning(subject, `It has ${differences.join('; ')}.`, 'Correct the offer, or name another flavor.');
  });
}

function imageNamed({ api }: Platform, name: string): Promise<Diagnosis> {
  const subject = `image ${name}`;
  const remedy = `\`openstack image create --disk-format qcow2 --file FILE ${name}\`, or name another under platform.images.`;
  return examine(subject, remedy, async () => {
    const found = await api.image(name);
    return found === undefined
      ? broken(subject, 'There is no active image of that name.', remedy)
      : `It is ${found.id}.`;
  });
}

function zoneNamed({ api }: Platform, name: string): Promise<Diagnosis> {
  const subject = `availability zone ${name}`;
  const remedy = 'See `openstack availability zone list`.';
  return examine(subject, remedy, async () => {
    const zone = (await api.zones()).find((one) => one.name === name);
    if (zone === undefined) return broken(subject, 'There is none.', remedy);
    return zone.isAvailable ? 'It is available.' : warning(subject, 'No host of it is available.', remedy);
  });
}

async function* room(platform: Platform): AsyncGenerator<Diagnosis> {
  let inventory: Inventory | undefined;
  const counted = await examine('room', 'See `openstack limits show --absolute`.', async () => {
    inventory = await readInventory(platform);
    const zones = await platform.api.zones();
    return zones.every(({ hosts }) => hosts === undefined)
      ? warning(
          'Placement',
          'This project has no access to it: only quotas limit sales.',
          'Give the project a quota that its hosts can hold.',
        )
      : 'It is counted by quota and Placement.';
  });
  yield counted;
  if (inventory !== undefined)
    yield* diagnoseFreeUnits(
      inventory,
      'See `openstack quota show` and `openstack allocation candidate list`.',
    );
}
