import { z } from 'zod';
import type { Offer } from '../../../orchestrator/catalog/catalog.ts';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { examine } from '../../kit/diagnosis.ts';
import { type IncusApi, type Member, SINGLE, targetOf } from '../api.ts';
import type { IncusClient } from '../client.ts';
import type { IncusConfig, IncusOffer } from '../options.ts';
import { imageOf } from '../translate.ts';

export function notSetUp(subject: string, status: string | undefined, show: string): Diagnosis {
  return broken(
    subject,
    `Its status is ${status}: machines that need it do not start.`,
    `See \`${show}\` and \`incus warning list\`.`,
  );
}

const imageSchema = z.object({
  type: z.string(),
  properties: z
    .record(z.string(), z.string())
    .nullish()
    .transform((properties) => properties ?? {}),
});

/** Checks that each image of an offer exists, is of the offer's kind, and is not declared to lack cloud-init. */
export async function* diagnoseImages(
  api: IncusApi,
  offers: readonly { offer: Offer; machine: IncusOffer }[],
  options: IncusConfig,
): AsyncGenerator<Diagnosis> {
  const kindsByAlias = new Map<string, Set<string>>();
  for (const { offer, machine } of offers)
    for (const image of offer.osOptions) {
      const { alias } = imageOf(image, machine, options);
      kindsByAlias.set(alias, (kindsByAlias.get(alias) ?? new Set()).add(machine.kind));
    }
  for (const [alias, kinds] of kindsByAlias) yield await diagnoseImage(api, alias, kinds);
}

function diagnoseImage(api: IncusApi, alias: string, kinds: ReadonlySet<string>): Promise<Diagnosis> {
  const subject = `image ${alias}`;
  const remedy = 'See the section on images in docs/how-to/incus.md.';
  return examine(subject, remedy, async () => {
    const found = await api.image(alias);
    if (found === undefined) return broken(subject, 'No image has that alias or fingerprint.', remedy);
    const { type, properties } = imageSchema.parse(found);
    const others = [...kinds].filter((kind) => kind !== type);
    if (others.length > 0)
      return broken(
        subject,
        `Its type is ${type}, but an offer uses it for a ${others.join(' and a ')}.`,
        'Give the offer an image of the right type under `machine.images`.',
      );
    const finding = 'It is the variant default, which has no cloud-init: machines get no SSH keys.';
    return properties['variant'] === 'default'
      ? warning(subject, finding, remedy)
      : `It exists, with type ${type}.`;
  });
}

/** Checks the members of the cluster. */
export function diagnoseMembers(members: readonly Member[]): Diagnosis[] {
  return members.map(({ server_name: name, status, message }) =>
    status === 'Online'
      ? ok(`member ${name}`, 'It is online.')
      : warning(
          `member ${name}`,
          `It is ${status}: ${message}. Nothing new is placed there, and the state of its machines is unknown.`,
          `Start incusd on ${name}, or see \`incus cluster list\`.`,
        ),
  );
}

/** Checks that a member can run virtual machines, if an offer needs them. */
export function diagnoseVirtualMachines(client: IncusClient, member: string): Promise<Diagnosis> {
  const subject = `virtual machines on ${member}`;
  const remedy =
    'Load kvm and vhost_vsock and install QEMU there, or give the offer a host_group without that member.';
  return examine(subject, remedy, async () => {
    const { metadata } = await client.get('/1.0', targetOf(member));
    const { driver = '' } = (metadata as { environment: { driver?: string } }).environment;
    if (driver.includes('qemu')) return 'Incus can run them.';
    return broken(subject, `Incus runs only ${driver} there, no virtual machines.`, remedy);
  });
}

export function* diagnoseForwards(
  { port_forwards: forwards }: IncusConfig,
  members: readonly string[],
): Generator<Diagnosis> {
  if (forwards === undefined) return;
  const [first, last] = forwards.ports;
  for (const member of members)
    if (forwards.addresses[member] === undefined)
      yield broken(
        `port forwards on ${member}`,
        member === SINGLE
          ? 'Incus is a single daemon, and platform.port_forwards.addresses has no `none`: no machine comes up.'
          : 'platform.port_forwards.addresses has no address for it: no machine comes up there.',
        `Add \`${member}: THE-ADDRESS-OF-THE-HOST\`.`,
      );
  yield ok('ports', `${last - first + 1} ports for each host.`);
}

/** Checks that the configured cluster groups exist. An offer with a missing group cannot be placed. */
export function diagnoseGroups(members: readonly Member[], wanted: readonly string[]): Diagnosis[] {
  const [finding, remedy] =
    members.length === 0
      ? [
          'Incus is a single daemon, which has no groups: offers that need the group are not sold.',
          'Remove it from platform.datacenters and from host_group of the offers.',
        ]
      : [
          'It has no members: offers that need it are not sold.',
          'Assign members with `incus cluster group assign MEMBER GROUP`, or correct platform.datacenters and host_group of the offers.',
        ];
  return wanted.map((group) =>
    members.some(({ groups }) => groups?.includes(group))
      ? ok(`cluster group ${group}`, 'It has members.')
      : broken(`cluster group ${group}`, finding, remedy),
  );
}
