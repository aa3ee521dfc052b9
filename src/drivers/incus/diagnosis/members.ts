import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { type IncusApi, SINGLE, targetOf } from '../api.ts';
import type { IncusClient } from '../client.ts';
import type { IncusConfig } from '../options.ts';
import { failed } from './failed.ts';

/** Checks the members and returns their names; `none` for a single daemon. */
export async function* diagnoseMembers(api: IncusApi): AsyncGenerator<Diagnosis, string[]> {
  try {
    const members = await api.members();
    for (const { server_name: name, status, message } of members)
      yield status === 'Online'
        ? ok(`member ${name}`, 'It is online.')
        : warning(
            `member ${name}`,
            `It is ${status}: ${message}. Nothing new is placed there, and the state of its machines is unknown.`,
            `Start incusd on ${name}, or see \`incus cluster list\`.`,
          );
    return members.length === 0 ? [SINGLE] : members.map(({ server_name: name }) => name);
  } catch (error) {
    yield failed('cluster members', error, 'See `incus cluster list`.');
    return [];
  }
}

/** Checks that members can run virtual machines, if an offer needs them. */
export async function* diagnoseVirtualMachines(
  client: IncusClient,
  members: readonly string[],
): AsyncGenerator<Diagnosis> {
  for (const member of members) {
    const subject = `virtual machines on ${member}`;
    const remedy =
      'Load kvm and vhost_vsock and install QEMU there, or give the offer a host_group without that member.';
    try {
      const { metadata } = await client.get('/1.0', targetOf(member));
      const { driver = '' } = (metadata as { environment: { driver?: string } }).environment;
      yield driver.includes('qemu')
        ? ok(subject, 'Incus can run them.')
        : broken(subject, `Incus runs only ${driver} there, no virtual machines.`, remedy);
    } catch (error) {
      yield failed(subject, error, remedy);
    }
  }
}

export async function* diagnoseForwards(
  { port_forwards: forwards }: IncusConfig,
  members: readonly string[],
): AsyncGenerator<Diagnosis> {
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
export async function* diagnoseGroups(
  api: IncusApi,
  named: readonly (string | undefined)[],
): AsyncGenerator<Diagnosis> {
  const wanted = new Set(named.filter((name) => name !== undefined));
  if (wanted.size === 0) return;
  try {
    const members = await api.members();
    for (const group of wanted) {
      const subject = `cluster group ${group}`;
      if (members.some(({ groups }) => groups?.includes(group))) yield ok(subject, 'It has members.');
      else
        yield broken(
          subject,
          members.length === 0
            ? 'Incus is a single daemon, which has no groups: offers that need the group are not sold.'
            : 'It has no members: offers that need it are not sold.',
          members.length === 0
            ? 'Remove it from platform.datacenters and from host_group of the offers.'
            : `\`incus cluster group assign MEMBER ${group}\`, or correct platform.datacenters and host_group of the offers.`,
        );
    }
  } catch (error) {
    yield failed('cluster groups', error, 'See `incus cluster group list`.');
  }
}
