import { renderOneDocument } from '../../orchestrator/cloud-init/render.ts';
import type {
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending, unfinished } from '../../platform-model/steps.ts';
import { orFailure } from '../kit/answers.ts';
import type { FloatingIp, Named, Port, Server, Volume } from './api.ts';
import { classify, toFailure, unlessConflict } from './errors.ts';
import { endpointIn, portOf, showMachine } from './machines.ts';
import { type Attempt, phaseOf, readAttempt } from './objects.ts';
import { eligible, findFlavor } from './placement.ts';
import {
  type MachineMethod,
  offerOf,
  type Platform,
  POLL_MS,
  waitForServer,
  waitForVolume,
} from './platform.ts';
import { zoneOf } from './session.ts';
import {
  detailOf,
  imageOf,
  isCreated,
  isName,
  mark,
  readDescription,
  taskOf,
  toDescription,
  toNoteMetadata,
} from './translate.ts';

/** The most user data that Nova accepts, before base64. */
const MAX_USER_DATA_BYTES = 49_149;
const GROUP = 'berth';
/** A request whose answer is lost may still reach the service through its proxies. */
export const ON_ITS_WAY_MS = 30_000;
const ASK_AGAIN = 'ask-again';

/** Makes the port, the boot volume, the server, and the floating IP, one a call. */
export const createMachine: MachineMethod<'create'> = async (platform, spec, cookie) => {
  if (!isName(spec.ref)) return failed('invalid', `${spec.ref} is not a valid tag of Nova`);
  const attempt = await readAttempt(platform, spec.ref);
  if (attempt.server !== undefined) return finish(platform, spec, attempt, attempt.server);
  if (phaseOf(attempt) === 'destroying') return failed('conflict', `${spec.ref} is being removed`, 'certain');
  if (cookie?.startsWith('server:') || phaseOf(attempt) === 'made')
    return unfinished(`the server of ${spec.ref} has vanished`);
  if (cookie !== ASK_AGAIN && attempt.ports.some((port) => readDescription(port)?.isAsked))
    return pending(ASK_AGAIN, ON_ITS_WAY_MS, 'an earlier request for its server may still arrive');
  const step = await orFailure(() => make(platform, spec, attempt), toFailure);
  // The port may have been made in this call or an earlier one.
  return step.outcome === 'failed' && step.sideEffect === 'none' && (await hasPort(platform, spec.ref))
    ? { ...step, sideEffect: 'certain' }
    : step;
};

/** Whether a port of the attempt may be there. */
async function hasPort({ api }: Platform, ref: OwnerRef): Promise<boolean> {
  return api.ports({ name: ref }).then(
    (ports) => ports.length > 0,
    () => true,
  );
}

async function make(platform: Platform, spec: MachineSpec, attempt: Attempt): Promise<Step<ObservedMachine>> {
  const { api, options } = platform;
  const offer = offerOf(platform, spec.offerId);
  const { name: imageName, loginUser } = imageOf(spec.image, offer, options);
  const userData = Buffer.from(renderOneDocument(spec, { loginUser }));
  if (userData.length > MAX_USER_DATA_BYTES)
    return failed(
      'invalid',
      `its user data has ${userData.length} bytes, and Nova accepts ${MAX_USER_DATA_BYTES}`,
    );
  const zone =
    spec.host === undefined ? eligible(platform, await api.zones(), spec, offer)[0]?.name : zoneOf(spec.host);
  if (zone === undefined) return failed('capacity', 'no zone that it may use is available');
  const [flavors, image] = await Promise.all([api.flavors(), api.image(imageName)]);
  const flavor = findFlavor(flavors, offer);
  if (flavor === undefined) return failed('invalid', `the cloud has no flavor ${offer.flavor}`);
  if (image === undefined) return failed('image_missing', `the cloud has no active image ${imageName}`);
  const description = (isAsked: boolean) =>
    toDescription({ ref: spec.ref, phase: 'making', serverId: undefined, isAsked, note: spec.note });
  const network = offer.network ?? options.network;
  const port =
    attempt.ports[0] ?? (await makePort(platform, network, spec.ref, description(!offer.boot_volume)));
  if ('outcome' in port) return port;
  const boot =
    offer.boot_volume && (attempt.bootVolumes[0] ?? (await makeBootVolume(platform, spec, image.id)));
  if (boot?.status === 'error') return unfinished(`Cinder could not make the boot volume ${boot.id}`);
  if (boot !== undefined && boot.status !== 'available') return waitForVolume(`boot:${boot.id}`, boot);
  if (boot !== undefined && !isCreated(boot))
    await api.addMetadata('volume', `/volumes/${boot.id}`, { [mark.id]: boot.id });
  if (!readDescription(port)?.isAsked)
    await api.update('network', `/ports/${port.id}`, 'port', { description: description(true) });
  const server = {
    name: spec.ref,
    flavorRef: flavor.id,
    ...(boot === undefined ? { imageRef: image.id } : { block_device_mapping_v2: [bootFrom(boot)] }),
    networks: [{ port: port.id }],
    availability_zone: zone,
    user_data: userData.toString('base64'),
    config_drive: true,
    tags: [spec.ref],
    metadata: {
      [mark.ref]: spec.ref,
      [mark.offer]: spec.offerId,
      [mark.loginUser]: loginUser,
      [mark.onStop]: platform.catalog.offers.get(spec.offerId)?.onStop ?? 'hold',
      ...toNoteMetadata(spec.note),
    },
  };
  const { id } = await api.make<{ id: string }>('compute', '/servers', 'server', server);
  return pending(`server:${id}`, POLL_MS);
}

/** The port keeps its address while the server is shelved, and Nova plugs no second server into it. */
async function makePort(
  platform: Platform,
  network: string,
  name: OwnerRef,
  description: string,
): Promise<Port | Step<never>> {
  const { api } = platform;
  const on = await api.named('networks', network);
  if (on === undefined)
    return failed('invalid', `the cloud has no network ${network}, or several of that name`);
  const groups = await securityGroups(platform);
  if (typeof groups === 'string') return failed('invalid', groups);
  const port = { name, description, network_id: on.id, security_groups: groups };
  return api.make('network', '/ports', 'port', port);
}

/** Ids of the security groups of machines; a sentence if one is missing. */
async function securityGroups(platform: Platform): Promise<string[] | string> {
  const { api, options } = platform;
  const ids: string[] = [];
  for (const name of options.security_groups ?? []) {
    const found = await api.named('security-groups', name);
    if (found === undefined) return `the project has no security group ${name}, or several of that name`;
    ids.push(found.id);
  }
  if (options.security_groups !== undefined) return ids;
  // Two first creates at once make two.
  const all = await api.allNamed('security-groups', GROUP);
  const whole = all.find((one) => one.security_group_rules?.some(({ direction }) => direction === 'ingress'));
  if (whole !== undefined) return [whole.id];
  // Without a rule, its creation was interrupted.
  const [known] = all;
  const description = 'Machines of Berth: SSH and ping from everywhere';
  const made =
    known ?? api.make<Named>('network', '/security-groups', 'security_group', { name: GROUP, description });
  const { id } = await made;
  const both = ['IPv4', 'IPv6'].flatMap((ethertype) => [
    { ethertype, protocol: 'tcp', port_range_min: 22, port_range_max: 22 },
    { ethertype, protocol: ethertype === 'IPv4' ? 'icmp' : 'ipv6-icmp' },
  ]);
  for (const rule of both) {
    const ofGroup = { ...rule, direction: 'ingress', security_group_id: id };
    await unlessConflict(api.make('network', '/security-group-rules', 'security_group_rule', ofGroup));
  }
  return [id];
}

function makeBootVolume(platform: Platform, spec: MachineSpec, imageId: string): Promise<Volume> {
  const { api, options } = platform;
  const { boot_volume: wanted } = offerOf(platform, spec.offerId);
  const zone = options.datacenters[spec.datacenter]?.volume_zone;
  return api.make('volume', '/volumes', 'volume', {
    name: spec.ref,
    size: spec.rootDiskGb,
    imageRef: imageId,
    ...(wanted?.type !== undefined && { volume_type: wanted.type }),
    ...(zone !== undefined && { availability_zone: zone }),
    metadata: { [mark.bootOf]: spec.ref, ...toNoteMetadata(spec.note) },
  });
}

function bootFrom({ id }: Volume): object {
  return {
    source_type: 'volume',
    destination_type: 'volume',
    uuid: id,
    boot_index: 0,
    delete_on_termination: false,
  };
}

async function finish(
  platform: Platform,
  spec: MachineSpec,
  attempt: Attempt,
  server: Server,
): Promise<Step<ObservedMachine>> {
  const { api, options } = platform;
  const { ref, note } = spec;
  const path = `/servers/${server.id}`;
  const isComplete = isCreated(server);
  const cookie = `server:${server.id}`;
  // A list has no fault of a server for which Nova found no host.
  if (server.status === 'ERROR' && !isComplete)
    return failedBuild((server.fault === undefined && (await api.server(server.id))) || server);
  if (taskOf(server) === 'deleting' || server.status === 'SOFT_DELETED')
    return unfinished(`the server ${server.id} is being deleted`);
  // The guest switched itself off before it was reached.
  if (server.status === 'SHUTOFF' && taskOf(server) === undefined) {
    await api.act('compute', path, { 'os-start': null });
    return pending(cookie, POLL_MS);
  }
  if (server.status !== 'ACTIVE') return waitForServer(cookie, server);
  const port = portOf(server, attempt.ports);
  if (port === undefined)
    return failed('boot_failed', `the port of the server ${server.id} is gone`, 'certain');
  if (endpointIn(platform, server, attempt) === undefined)
    return options.floating_network === undefined
      ? pending(cookie, POLL_MS, 'its address')
      : giveFloatingIp(platform, spec, port, cookie, attempt.floatingIps);
  if (!isComplete) {
    const description = toDescription({ ref, phase: 'made', serverId: server.id, note });
    await api.update('network', `/ports/${port.id}`, 'port', { description });
    await api.addMetadata('compute', path, { [mark.id]: server.id });
  }
  const complete = { ...server, metadata: { ...server.metadata, [mark.id]: server.id } };
  return done(await showMachine(platform, ref, complete, attempt));
}

/** Nova accepts a create before it looks for a host: a lack of capacity shows as a fault of the server. */
function failedBuild(server: Server): Step<never> {
  const code = classify(detailOf(server));
  return failed(code === 'capacity' || code === 'quota' ? code : 'boot_failed', detailOf(server), 'certain');
}

async function giveFloatingIp(
  { api, options }: Platform,
  { ref, note }: MachineSpec,
  { id: port_id }: Port,
  cookie: string,
  [loose]: readonly FloatingIp[],
): Promise<Step<never>> {
  if (loose !== undefined) {
    await api.update('network', `/floatingips/${loose.id}`, 'floatingip', { port_id });
    return pending(cookie, 1);
  }
  const name = options.floating_network ?? '';
  const network = await api.named('networks', name);
  if (network === undefined)
    return failed('invalid', `the cloud has no network ${name}, or several of that name`, 'certain');
  const description = toDescription({ ref, phase: 'made', serverId: undefined, note });
  const floatingIp = { floating_network_id: network.id, port_id, description };
  await api.make('network', '/floatingips', 'floatingip', floatingIp);
  return pending(cookie, 1);
}
